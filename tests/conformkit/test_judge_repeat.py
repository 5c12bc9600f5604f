"""What other runs of a golden are judged by, and a runner spec: evidence in, one verdict for each rule out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import RepeatSeen, RetrySeen, RunSeen
from oarbank_conformkit.fixtures import RunnerSpec
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.repeat import judge_repeat
from oarbank_conformkit.judge.retry import judge_retry
from oarbank_conformkit.judge.run import judge_golden
from oarbank_conformkit.judge.spec import judge_spec
from tests.conformkit.test_judge_runs import GOLDEN, MODULE, RESULT, payload, ran

assert isinstance(GOLDEN, Golden)
_, FIRST = judge_golden(MODULE, GOLDEN, ran())
OTHER = payload(texts=["3 UNITS"])


def repeated(seen: RepeatSeen, *, exact: bool = True, first: str | None = FIRST) -> dict[str, Check]:
    assert isinstance(GOLDEN, Golden)
    return {one.rule: one for one in judge_repeat(MODULE, GOLDEN, first, seen, exact=exact)}


HONEST = RepeatSeen(ran(), ("C",), nudges=9)
REPEATS = [
    # behaviour, seen, golden.repeat, nudge.harmless, writes.inside, part of a sentence
    ("the same again", HONEST, "pass", "pass", "pass", "again"),
    ("another digest", replace(HONEST, run=ran(OTHER)), "fail", "pass", "pass", "must be the first run's"),
    ("a nudge ends it", replace(HONEST, run=ran(None, exit=-10)), "unknown", "fail", "pass", "Leave SIGUSR1 ignored"),
    ("a Mac's nudge ends it", replace(HONEST, run=ran(None, exit=-30)), "unknown", "fail", "pass", "signal 30"),
    ("never nudged", replace(HONEST, nudges=0), "pass", "unknown", "pass", "it was not nudged"),
    ("a stray", replace(HONEST, strays=("a", "b", "c", "d")), "pass", "pass", "fail", "found a, b, c and 1 more"),
    ("no start", RepeatSeen(RunSeen(refused="no")), "fail", "unknown", "unknown", "could not be started: no"),
]


@pytest.mark.parametrize(
    ("behaviour", "seen", "repeat", "nudge", "writes", "words"), REPEATS, ids=[row[0] for row in REPEATS]
)
def test_second_run(behaviour: str, seen: RepeatSeen, repeat: str, nudge: str, writes: str, words: str) -> None:
    found = repeated(seen)

    wanted = {"golden.repeat": repeat, "nudge.harmless": nudge, "writes.inside": writes}
    assert {rule: one.status for rule, one in found.items()} == wanted
    assert any(words in one.detail for one in found.values())


def test_results_that_need_not_be_equal_are_not_compared() -> None:
    assert repeated(replace(HONEST, run=ran(OTHER)), exact=False)["golden.repeat"].status == "skip"


@pytest.mark.parametrize(("leaks", "status"), [((), "pass"), (("stderr",), "fail")])
def test_secrets_are_judged_where_there_are_some(leaks: tuple[str, ...], status: str) -> None:
    assert repeated(replace(HONEST, secrets=("token",), leaks=leaks))["secrets.kept"].status == status


RETRIES = [
    ("the same", RetrySeen(killed_s=0.3, run=ran()), "pass", "killed after 0.3 s"),
    ("another", RetrySeen(killed_s=0.3, run=ran(OTHER)), "fail", "must be the first run's"),
    ("a second failure", RetrySeen(killed_s=0.3, run=ran(None, exit=1)), "fail", "must exit 0"),
    ("too short", RetrySeen(), "unknown", "before it could be killed"),
    ("no start", RetrySeen(refused="no"), "unknown", "could not be started"),
]


@pytest.mark.parametrize(("behaviour", "seen", "status", "words"), RETRIES, ids=[row[0] for row in RETRIES])
def test_retry(behaviour: str, seen: RetrySeen, status: str, words: str) -> None:
    assert isinstance(GOLDEN, Golden)
    found = judge_retry(MODULE, GOLDEN, FIRST, seen)

    assert found.status == status
    assert words in found.detail


def spec(**expect: Any) -> RunnerSpec:
    return RunnerSpec(0, "a", None, {}, (), {}, **expect)


def failed(reason: str = "standin/bad_spec") -> bytes:
    return json.dumps({"reason": reason}).encode()


PICTURE = RESULT | {"artifacts": [{"name": "picture", "files": [{"path": "a.png", "local": "a.png"}]}]}
SPECS = [
    # behaviour, spec, seen, rules that pass, rules that fail, part of a sentence
    ("as expected", spec(), ran(), {"spec.exit", "spec.result"}, set(), "after"),
    ("another exit", spec(), ran(None, exit=4), set(), {"spec.exit"}, "must exit 0; found exit 4"),
    ("no result", spec(), ran(None), {"spec.exit"}, {"spec.result"}, "found no result.json"),
    ("its artifact", spec(artifacts=("picture",)), ran(PICTURE), {"spec.exit", "spec.result"}, set(), "picture"),
    ("no artifact", spec(artifacts=("picture",)), ran(), {"spec.exit"}, {"spec.result"}, "found none"),
    ("refused", spec(exit=2), ran(None, exit=2, failure=failed()), {"spec.exit", "spec.failure"}, set(), "bad_spec"),
    ("no word", spec(exit=2), ran(None, exit=2), {"spec.exit"}, {"spec.failure"}, "must leave failure.json"),
    (
        "another reason",
        spec(exit=2, reason="standin/other"),
        ran(None, exit=2, failure=failed()),
        {"spec.exit"},
        {"spec.failure"},
        "must be standin/other; found 'standin/bad_spec'",
    ),
    ("still running", spec(exit=2), ran(None, exit=None), set(), {"spec.exit"}, "still running after 60 s"),
]


@pytest.mark.parametrize(
    ("behaviour", "asked", "seen", "passed", "refused", "words"), SPECS, ids=[row[0] for row in SPECS]
)
def test_runner_spec(
    behaviour: str, asked: RunnerSpec, seen: RunSeen, passed: set[str], refused: set[str], words: str
) -> None:
    found = judge_spec(MODULE, asked, seen)

    assert {one.rule for one in found if one.status == "pass"} == passed
    assert {one.rule for one in found if one.status == "fail"} == refused
    assert any(words in one.detail for one in found)
