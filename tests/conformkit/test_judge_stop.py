"""A stop judged from its moments: the bound to the millisecond, and what a busy machine excuses."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_conformkit.evidence import StopSeen
from oarbank_conformkit.judge.stop import judge_stop, judge_stop_result, judge_terminated
from oarbank_conformkit.result_schema import result_schema
from tests.conformkit import bundles
from tests.conformkit.test_judge_runs import GOLDEN, MODULE, payload

GOOD = StopSeen("stopped", 20.0, ack="failure", ack_s=0.02, absent_s=0.015, exit_s=0.04, alive_s=0.03, code=75)


def late(ack_s: float, disturbed_s: float = 0.0) -> StopSeen:
    return replace(
        GOOD,
        ack_s=ack_s,
        absent_s=ack_s - 0.005,
        exit_s=ack_s + 0.01,
        alive_s=ack_s,
        disturbed_ack_s=disturbed_s,
        disturbed_s=disturbed_s,
    )


DEAF = StopSeen("ignored", 3.0, absent_s=3.004, exit_s=None, alive_s=3.004, code=None)

ROWS = [
    # behaviour, seen, acknowledged, exited
    ("at once", GOOD, "pass", "pass"),
    ("after 1.9 s", late(1.9), "pass", "pass"),
    ("after 2.2 s", late(2.2), "fail", "pass"),
    ("after 2.2 s, 0.1 of them the machine's", late(2.2, 0.1), "fail", "pass"),
    ("after 2.2 s, 0.5 of them the machine's", late(2.2, 0.5), "unknown", "pass"),
    ("seen late, since the kit itself was late", replace(GOOD, ack_s=2.3, absent_s=1.9), "unknown", "pass"),
    ("by its result", replace(GOOD, ack="result", code=0), "pass", "pass"),
    ("by its result, with 75", replace(GOOD, ack="result", code=75), "pass", "fail"),
    ("with exit 0 and no result", replace(GOOD, code=0), "pass", "fail"),
    ("killed by a signal after it acknowledged", replace(GOOD, code=-15), "pass", "fail"),
    ("with a failure.json of another fault", replace(GOOD, ack_fault="/fault: must be transient"), "fail", "pass"),
    ("gone without a word", StopSeen("ignored", 20.0, exit_s=0.1, alive_s=0.09, code=75), "fail", "pass"),
    ("deaf", DEAF, "fail", "fail"),
    (
        "deaf, on a machine busy half of the time",
        replace(DEAF, disturbed_ack_s=1.6, disturbed_s=1.6),
        "unknown",
        "unknown",
    ),
    ("deaf with a grace below the bound", replace(DEAF, grace_s=1.0, absent_s=2.005, alive_s=2.005), "fail", "fail"),
    ("acknowledged and stayed", replace(DEAF, outcome="timeout", ack="failure", ack_s=0.1), "pass", "fail"),
    ("left after its grace", replace(GOOD, grace_s=1.0, exit_s=1.5, alive_s=1.49), "pass", "fail"),
    (
        "a crash before a phase",
        StopSeen("no_phase", 20.0, lasted_s=0.1, code=1, stderr="boom"),
        "unknown",
        "unknown",
    ),
    ("no phase", StopSeen("no_phase", 20.0, lasted_s=0.5), "skip", "skip"),
    ("finished first", StopSeen("finished_first", 20.0, lasted_s=0.5), "skip", "skip"),
]


@pytest.mark.parametrize(("behaviour", "seen", "acknowledged", "exited"), ROWS, ids=[row[0] for row in ROWS])
def test_stop(behaviour: str, seen: StopSeen, acknowledged: str, exited: str) -> None:
    first, second = judge_stop("golden selftest", seen.grace_s, seen)

    assert (first.rule, first.status) == ("stop.acknowledged", acknowledged)
    assert (second.rule, second.status) == ("stop.exit", exited)


def test_lines_name_both_bounds() -> None:
    first, second = judge_stop("golden selftest", 20.0, late(2.2))

    assert first.name == "golden selftest: acknowledges a stop within 2.0 s"
    assert second.name == "golden selftest: exits within 20 s of a stop"
    assert "2.0 s" in first.detail
    assert "2.200 s" in first.detail


def test_skip_gives_advice() -> None:
    no_phase = judge_stop("golden selftest", 20.0, StopSeen("no_phase", 20.0, lasted_s=0.5))[0]
    too_short = judge_stop("golden selftest", 20.0, StopSeen("finished_first", 20.0, lasted_s=0.5))[0]

    assert "phase" in no_phase.detail
    assert "Give it more to do" in too_short.detail


def test_unknown_names_what_the_machine_took() -> None:
    found = judge_stop("golden selftest", 20.0, late(2.2, 0.5))[0]

    assert "a busy machine took 0.500 s" in found.detail


def answered(result: Any, **other: Any) -> StopSeen:
    data = result if result is None or isinstance(result, bytes) else json.dumps(result).encode()
    return replace(GOOD, ack="result", code=0, result=data, **other)


WHOLE = answered(payload(texts=["3 units"]))
FIRST = GOLDEN.digest  # type: ignore[union-attr]
RESULTS: list[tuple[str, StopSeen | None, str | None, list[str], str]] = [
    # behaviour, seen, digest of the first run, statuses, part of the sentence
    ("the whole result", WHOLE, FIRST, ["pass"], ""),
    ("a part of it", answered(payload(texts=["1 units"])), FIRST, ["fail"], f"must have the digest {FIRST}; found "),
    ("a part without a field", answered(payload(tokens=1)), FIRST, ["fail"], "must hold texts"),
    ("half a file", answered(b'{"schema": '), FIRST, ["fail"], "must be JSON"),
    ("a result that is gone", answered(None), FIRST, ["fail"], "found no result.json"),
    ("a file that is not there", replace(WHOLE, missing_files=("a",)), FIRST, ["fail"], "regular file"),
    ("the whole one where the golden is wrong", WHOLE, "a" * 64, ["pass"], ""),
    ("no first run to compare with", WHOLE, None, ["unknown"], "no digest to compare"),
    ("failure.json", GOOD, FIRST, [], ""),
    ("nothing that could be stopped", StopSeen("no_phase", 20.0), FIRST, [], ""),
]


@pytest.mark.parametrize(("behaviour", "seen", "first", "expected", "words"), RESULTS, ids=[row[0] for row in RESULTS])
def test_result_that_answers_a_stop_must_be_whole(
    behaviour: str, seen: StopSeen | None, first: str | None, expected: list[str], words: str
) -> None:
    found = judge_stop_result(MODULE, GOLDEN, first, seen)  # type: ignore[arg-type]

    assert [one.status for one in found] == expected
    assert all(words in one.detail and one.rule == "stop.result_true" for one in found)


def test_result_that_answers_a_stop_keeps_the_schema_of_the_results() -> None:
    schema = result_schema("r.json", json.dumps(bundles.RESULT_SCHEMA).encode())
    broken = answered(payload(texts=["3 units"], units="3"))

    [found] = judge_stop_result(MODULE, GOLDEN, FIRST, broken, schema)  # type: ignore[arg-type]
    [right] = judge_stop_result(MODULE, GOLDEN, FIRST, WHOLE, schema)  # type: ignore[arg-type]

    assert (found.status, right.status) == ("fail", "pass")
    assert "/payload/units: must be a whole number" in found.detail


TERMINATED: list[tuple[str, StopSeen | None, str, str]] = [
    # behaviour, seen, status, part of the sentence
    ("acknowledges", GOOD, "pass", "acknowledged (failure.json) after 0.020 s"),
    ("answers with its result", replace(GOOD, ack="result", code=0), "pass", "answered with its result, as a task"),
    ("acknowledges, and takes its time", replace(GOOD, exit_s=None, code=None), "pass", "acknowledged"),
    ("acknowledges, with another status", replace(GOOD, code=3), "pass", "acknowledged"),
    ("dies of it", replace(DEAF, exit_s=0.01, code=-15), "warn", "found no word; found signal 15"),
    ("a shell around it dies of it", replace(DEAF, exit_s=0.01, code=143), "warn", "found no word; found exit 143"),
    ("a handler ends it", replace(DEAF, exit_s=0.01, code=1), "warn", "Ignore SIGTERM before you begin"),
    ("acknowledges, then dies of it", replace(GOOD, code=-15), "warn", "but then died of it; found signal 15"),
    ("writes another fault", replace(GOOD, ack_fault="/fault: must be transient"), "warn", "with a fault, /fault"),
    ("goes on as if nothing were", DEAF, "unknown", "did not answer within 3.0 s; see stop.acknowledged"),
    ("finishes first", StopSeen("finished_first", 20.0, lasted_s=0.5), "skip", "Give it more to do"),
    ("no start", None, "unknown", "could not be started"),
]


@pytest.mark.parametrize(("behaviour", "seen", "status", "words"), TERMINATED, ids=[row[0] for row in TERMINATED])
def test_stop_that_comes_with_sigterm_is_advice(behaviour: str, seen: StopSeen | None, status: str, words: str) -> None:
    found = judge_terminated("golden selftest", seen)

    assert (found.rule, found.status) == ("stop.sigterm", status)
    assert words in found.detail
