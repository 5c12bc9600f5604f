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
from oarbank_conformkit.judge.repeat import BESIDE, HELD_OPEN, IN_BUNDLE, judge_repeat
from oarbank_conformkit.judge.retry import judge_retry
from oarbank_conformkit.judge.run import judge_golden
from oarbank_conformkit.judge.spec import judge_spec
from oarbank_conformkit.result_schema import result_schema
from tests.conformkit import bundles
from tests.conformkit.test_judge_runs import GOLDEN, MODULE, RESULT, payload, ran

assert isinstance(GOLDEN, Golden)
_, FIRST = judge_golden(MODULE, GOLDEN, ran())
OTHER = payload(texts=["3 UNITS"])


def repeated(seen: RepeatSeen, *, exact: bool = True, first: str | None = FIRST) -> dict[str, Check]:
    assert isinstance(GOLDEN, Golden)
    return {one.rule: one for one in judge_repeat(MODULE, GOLDEN, first, seen, exact=exact)}


HONEST = RepeatSeen(ran(), ("C",), nudges=9, watched=(IN_BUNDLE, BESIDE, HELD_OPEN))
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


PLACES = [
    # what, watched, unwatched, verdict, what is said
    ("all of them", (IN_BUNDLE, BESIDE, HELD_OPEN), (), "pass",
     "none in its bundle, beside its workdir or in a file that it held open elsewhere"),
    ("no open files", (IN_BUNDLE, BESIDE), ("in a file (unseen)",), "pass",
     "none in its bundle or beside its workdir; not looked for in a file (unseen)"),
    ("a big bundle", (BESIDE, HELD_OPEN), ("in its bundle (big)",), "pass",
     "none beside its workdir or in a file that it held open elsewhere; not looked for in its bundle (big)"),
    ("neither", (BESIDE,), ("in its bundle (big)", "in a file (unseen)"), "unknown",
     "not looked for in its bundle (big) and in a file (unseen)"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "watched", "unwatched", "status", "said"), PLACES, ids=[row[0] for row in PLACES])
def test_writes_are_cleared_where_somebody_looked(
    what: str, watched: tuple[str, ...], unwatched: tuple[str, ...], status: str, said: str
) -> None:
    found = repeated(replace(HONEST, watched=watched, unwatched=unwatched))["writes.inside"]

    assert (found.status, found.detail) == (status, said)


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
SCHEMA = result_schema("r.json", json.dumps(bundles.RESULT_SCHEMA).encode())


def test_result_of_a_runner_spec_keeps_the_schema_too() -> None:
    broken = ran(payload(texts="3 units"))

    found = {one.rule: one for one in judge_spec(MODULE, spec(), broken, SCHEMA)}

    assert found["spec.result"].status == "fail"
    assert "/payload/texts: must be a list" in found["spec.result"].detail
    assert {one.status for one in judge_spec(MODULE, spec(), ran(), SCHEMA)} == {"pass"}


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
