"""A pause and a throttle judged from what was seen: tables of evidence and verdicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oarbank_conformkit.evidence import PauseSeen, ThrottleSeen
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.pause import idle, judge_pause
from oarbank_conformkit.judge.run import judge_golden
from oarbank_conformkit.judge.throttle import judge_throttle
from tests.conformkit.test_judge_runs import GOLDEN, MODULE, payload, ran

assert isinstance(GOLDEN, Golden)
_, FIRST = judge_golden(MODULE, GOLDEN, ran())
HELD = PauseSeen(2.0, 2.0, quiet_s=0.1, cpu_s=0.01, run=ran())
UNRESUMED = replace(HELD, run=None)

PAUSES = [
    # behaviour, seen, pause.held, pause.kept, pause.result, part of a sentence
    ("held and resumed", HELD, "pass", "pass", "pass", "0.01 s of processor time"),
    ("held at the limit", replace(HELD, quiet_s=2.0), "pass", "pass", "pass", "after 2.0 s"),
    ("held late", replace(HELD, quiet_s=2.3), "fail", "unknown", "pass", "held after 2.3 s"),
    (
        "worked on",
        replace(HELD, quiet_s=None, watched_s=2.1, busy=0.97),
        "fail",
        "unknown",
        "pass",
        "with 0.97 of a processor",
    ),
    (
        "late on a busy machine",
        replace(HELD, quiet_s=None, watched_s=3.0, waited_s=1.1),
        "unknown",
        "unknown",
        "pass",
        "1.1 s",
    ),
    (
        "held late by what a busy machine took",
        replace(HELD, quiet_s=2.3, waited_s=0.4),
        "unknown",
        "unknown",
        "pass",
        "0.4",
    ),
    ("worked to its end", PauseSeen(2.0, ended_s=2.4), "fail", "unknown", "unknown", "to its end at 2.4 s"),
    ("ended within the limit", PauseSeen(2.0, ended_s=1.4), "unknown", "unknown", "unknown", "last 4 s or more"),
    ("ended while held", replace(UNRESUMED, ended_s=3.0), "pass", "fail", "unknown", "ended 3.0 s after"),
    ("woke", replace(HELD, cpu_s=0.4, woke_s=1.2), "pass", "fail", "pass", "from 1.2 s after the pause on"),
    ("a trickle", replace(HELD, cpu_s=0.12), "pass", "pass", "pass", "0.12 s"),
    ("waits for a processor", replace(HELD, wanted_s=0.5), "pass", "unknown", "pass", "waited 0.50 s"),
    ("a GPU at work", replace(HELD, gpu=0.3), "pass", "fail", "pass", "keep off the GPU"),
    ("another phase", replace(HELD, moved=("phase",)), "pass", "fail", "pass", "found another phase"),
    ("unreadable", replace(HELD, cpu_s=None), "pass", "unknown", "pass", "cannot be read"),
    ("another digest", replace(HELD, run=ran(payload(texts=["no"]))), "pass", "pass", "fail", "must be the first"),
    ("never resumed", replace(HELD, run=ran(None, exit=None)), "pass", "pass", "fail", "still running"),
    ("no phase", PauseSeen(2.0, lasted_s=0.2), "unknown", "unknown", "unknown", "Write a phase"),
    ("no start", PauseSeen(2.0, refused="no"), "unknown", "unknown", "unknown", "could not be started: no"),
]


@pytest.mark.parametrize(
    ("behaviour", "seen", "held", "kept", "result", "words"), PAUSES, ids=[row[0] for row in PAUSES]
)
def test_pause(behaviour: str, seen: PauseSeen, held: str, kept: str, result: str, words: str) -> None:
    assert isinstance(GOLDEN, Golden)
    found = {one.rule: one for one in judge_pause(MODULE, GOLDEN, FIRST, seen, exact=True)}

    assert [found[f"pause.{name}"].status for name in ("held", "kept", "result")] == [held, kept, result]
    assert any(words in one.detail for one in found.values())


@pytest.mark.parametrize(("exit_code", "status"), [(0, "pass"), (1, "fail")])
def test_result_that_need_not_be_equal_must_come(exit_code: int, status: str) -> None:
    assert isinstance(GOLDEN, Golden)
    seen = replace(HELD, run=ran(payload(texts=["no"]), exit=exit_code))

    assert judge_pause(MODULE, GOLDEN, FIRST, seen, exact=False)[2].status == status


@pytest.mark.parametrize(
    ("cpu_s", "wait_s", "expected"), [(0.0, 0.0, True), (0.02, 0.0, True), (0.03, 0.0, False), (0.0, 0.05, False)]
)
def test_step_without_work_has_neither_work_nor_a_wait_for_it(cpu_s: float, wait_s: float, expected: bool) -> None:
    assert idle(cpu_s, wait_s, 0.1) is expected


FULL = ThrottleSeen(2.0, before=1.9, before_s=0.5, limited=1.0, lifted=1.9)
THROTTLES = [
    # behaviour, processors, seen, statuses, part of a sentence
    ("honoured", 4, FULL, "pass pass", "1.90 processors before, 1.00 under threads 1"),
    ("ignored", 4, replace(FULL, limited=1.9), "fail pass", "must keep to 1.15"),
    ("not lifted", 4, replace(FULL, lifted=1.0), "pass fail", "again, as before"),
    ("not lifted, waits untold", 4, replace(FULL, lifted=1.0, waits_count=False), "pass unknown", "does not tell"),
    ("one anyway", 4, replace(FULL, before=1.0), "skip", "one processor anyway: 1.00"),
    ("one until its end", 4, ThrottleSeen(2.0, before=0.9, before_s=0.2, ended_s=0.3), "skip", "0.90"),
    ("starved, waits untold", 4, replace(FULL, before=0.4, waits_count=False), "unknown", "got 0.40"),
    ("one processor here", 1, ThrottleSeen(2.0), "skip", "this host has one"),
    ("too short", 4, ThrottleSeen(2.0, before=0.0, before_s=0.0, ended_s=0.05), "unknown", "List a duty spec"),
    ("ended under the limit", 4, replace(FULL, limited=None, lifted=None), "unknown unknown", "List a duty spec"),
    ("unreadable", 4, ThrottleSeen(2.0, unread=True), "unknown", "cannot be read"),
    ("no start", 4, ThrottleSeen(2.0, refused="no"), "unknown", "could not be started"),
]


@pytest.mark.parametrize(
    ("behaviour", "cpus", "seen", "statuses", "words"), THROTTLES, ids=[row[0] for row in THROTTLES]
)
def test_throttle(behaviour: str, cpus: int, seen: ThrottleSeen, statuses: str, words: str) -> None:
    found = judge_throttle("threads", cpus, seen)

    assert [one.status for one in found] == statuses.split()
    assert any(words in one.detail for one in found)
