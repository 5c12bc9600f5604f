"""A lower duty above 0 that follows another: who keeps the first is found, who holds the lower one is not accused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import DutySeen, Wait
from oarbank_conformkit.judge.duty_changes import lower_duty
from oarbank_conformkit.judge.duty_lines import Lines, used_reports
from oarbank_conformkit.judge.duty_switch import SWITCH_S, judge_switch
from oarbank_conformkit.shares import swing_s
from tests.conformkit.seen import OPENS, SPEC, cpu, judged
from tests.conformkit.test_judge_duty_changes import AGAIN_AT, ENDS_AT, LOWER, RIGHT, again, over, seen, told, zero

TICK_S = 0.005


def cycles(duty: float, unit_s: float, start: float, end: float, phase: float = 0.0) -> tuple[Tick, ...]:
    """Ticks of a runner that holds a duty by units of one length, from `phase`, a part of a cycle, on."""
    period_s = unit_s / duty

    def worked(at_s: float) -> float:
        whole, rest_s = divmod(at_s + phase * period_s, period_s)
        return whole * unit_s + min(rest_s, unit_s)

    found = []
    for number in range(round((end - start) / TICK_S)):
        gain_s = worked((number + 1) * TICK_S) - worked(number * TICK_S)
        found.append(Tick(start + (number + 1) * TICK_S, TICK_S, gain_s))
    return tuple(found)


def switched(
    unit_s: float, *, duty: float = 0.3, kept: bool = False, phase: float = 0.0, later_unit_s: float | None = None
) -> Check:
    """What is said of a runner with units of one length, which holds the lower duty or keeps the old one."""
    lower = lower_duty(duty)
    assert lower is not None
    before = cycles(duty, unit_s, OPENS, OPENS + 4.0, phase)
    after = cycles(duty if kept else lower, later_unit_s or unit_s, AGAIN_AT + 1.0, ENDS_AT, phase)
    quiet = (Wait(ENDS_AT, 10.0, 0.0),)
    window = cpu(ticks=before, total_s=sum(tick.gain_s for tick in before), waits=quiet)
    total_s = sum(tick.gain_s for tick in after)
    measure = replace(window, start=AGAIN_AT + 1.0, end=ENDS_AT, ticks=(*before, *after), total_s=total_s)
    reports = tuple(replace(one, duty=duty) for one in RIGHT[:3])
    change = again(cpu=measure, duty=lower)
    evidence = seen(cpu=window, changes=(zero(), change), reports=reports)
    line = Lines(replace(SPEC, duty=duty))
    return judge_switch(line, evidence, change, used_reports(evidence), line("duty.wakes", "pass", "worked"))


PHASES = [number / 7 for number in range(7)]
UNITS_S = [0.002, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0, 1.9, 3.0]


@pytest.mark.parametrize("duty", [0.16, 0.2, 0.3, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("unit_s", UNITS_S)
def test_who_holds_the_lower_duty_is_never_accused_whatever_the_unit(unit_s: float, duty: float) -> None:
    assert {switched(unit_s, duty=duty, phase=phase).status for phase in PHASES} <= {"pass", "skip"}


@pytest.mark.parametrize("later_unit_s", [0.2, 0.5, 1.0, 1.9])
def test_longer_units_that_come_later_are_seen_too(later_unit_s: float) -> None:
    found = {switched(0.01, phase=phase, later_unit_s=later_unit_s).status for phase in PHASES}

    assert found <= {"pass", "skip"}


@pytest.mark.parametrize(("duty", "unit_s"), [(0.2, 0.01), (0.3, 0.01), (0.3, 0.1), (0.5, 0.1), (0.8, 0.1)])
def test_who_keeps_the_old_duty_is_found_in_every_phase(duty: float, unit_s: float) -> None:
    assert {switched(unit_s, duty=duty, kept=True, phase=phase).status for phase in PHASES} == {"fail"}
    assert {switched(unit_s, duty=duty, phase=phase).status for phase in PHASES} == {"pass"}


@pytest.mark.parametrize("unit_s", UNITS_S)
def test_who_keeps_the_old_duty_never_passes(unit_s: float) -> None:
    assert {switched(unit_s, kept=True, phase=phase).status for phase in PHASES} <= {"fail", "skip"}


def test_units_too_long_for_two_seconds_are_told_so() -> None:
    found = switched(0.4)

    assert found.status == "skip"
    assert "duty 0.3 and duty 0.1 cannot be told apart in 2 s" in found.detail
    assert "Shorter units" in found.detail


def test_swing_of_a_steady_cycle_is_a_unit_less_what_it_was_owed() -> None:
    ahead_s, behind_s = swing_s(cycles(0.25, 0.1, 0.0, 4.0), 0.0, 4.0, 0.25)

    assert ahead_s == pytest.approx(0.075)
    assert behind_s == pytest.approx(0.075)


REPORTS: list[tuple[str, Any, str, str]] = [
    # what, the report of the lower duty, verdict, part of the sentence
    ("right", told(AGAIN_AT, AGAIN_AT + 2.0, LOWER, duty=LOWER), "pass", "held 0.100"),
    ("names the old duty", told(AGAIN_AT, AGAIN_AT + 2.0, LOWER), "fail", "must name the duty in force, 0.1 after 0.3"),
    ("names none", told(AGAIN_AT, AGAIN_AT + 2.0, LOWER, duty=None), "fail", "found none"),
    ("still waits at 0", told(AGAIN_AT - 0.04, AGAIN_AT + 0.3, 0.0, duty=0.0), "pass", "held 0.100"),
    ("holds too much", told(AGAIN_AT, AGAIN_AT + 2.0, 0.3, duty=LOWER), "fail", "reported 0.300 at duty 0.1"),
    ("holds a unit in a short time", told(AGAIN_AT, AGAIN_AT + 0.02, 0.35, duty=LOWER), "pass", "held 0.100"),
    ("began before", told(AGAIN_AT - 1.0, AGAIN_AT + 1.0, 0.3), "pass", "held 0.100"),
    ("none", None, "pass", "held 0.100"),
]


@pytest.mark.parametrize(("what", "report", "verdict", "words"), REPORTS, ids=[row[0] for row in REPORTS])
def test_reports_name_the_lower_duty_and_hold_it(what: str, report: Any, verdict: str, words: str) -> None:
    found = judged(seen(reports=(*RIGHT[:4], *([] if report is None else [report]))))["duty.switches"]

    assert found.status == verdict, found.detail
    assert words in found.detail


STARVED = [
    # what, waited for a processor in the window and at the lower duty (parts of the time), held there, verdict
    ("uses little of its duty", 0.0, 0.0, 0.09, "skip"),
    ("got little of what it wanted", 0.2, 0.0, 0.09, "pass"),
    ("got little, and follows", 0.2, 0.05, 0.05, "pass"),
    ("got little, and may have kept its duty", 0.2, 0.2, 0.1, "unknown"),
    ("got little, and kept its duty", 0.2, 0.0, 0.3, "fail"),
]


@pytest.mark.parametrize(("what", "before", "after", "held", "verdict"), STARVED, ids=[row[0] for row in STARVED])
def test_busy_machine_accuses_nobody_and_clears_nobody(
    what: str, before: float, after: float, held: float, verdict: str
) -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, before * 0.1) for i in range(40))
    later = tuple(Wait(AGAIN_AT + 1.0 + (i + 1) * 0.1, 0.1, after * 0.1) for i in range(20))
    measure = over(AGAIN_AT + 1.0, ENDS_AT, lower=held, waits=later)

    found = judged(seen(cpu=cpu(0.09, waits=waits), changes=(zero(), again(cpu=measure))))["duty.switches"]

    assert found.status == verdict, found.detail
    if verdict == "unknown":
        assert found.evidence is not None
        assert found.evidence["machine_busy"] is True


SILENT = [
    ("did not wake", seen(changes=(zero(), again(woke_s=None))), "unknown", "no work was seen at duty 0.1"),
    ("holds no duty", seen(cpu=cpu(0.9)), "skip", "does not hold duty 0.3"),
    ("no report", seen(reports=()), "unknown", "no report that says where the units run"),
    ("a GPU that nobody reads", seen(reports=tuple(replace(one, device="gpu") for one in RIGHT)), "unknown", "gpu"),
    ("finished in between", seen(left_s=1.0, code=0), "skip", "Give it more to do"),
]


@pytest.mark.parametrize(("what", "evidence", "verdict", "words"), SILENT, ids=[row[0] for row in SILENT])
def test_what_cannot_be_told_is_no_failure(what: str, evidence: DutySeen, verdict: str, words: str) -> None:
    found = judged(evidence)["duty.switches"]

    assert found.status == verdict
    assert words in found.detail


def test_a_duty_too_small_to_have_a_lower_one_is_a_skip_with_advice() -> None:
    found = judged(seen(cpu=cpu(0.1)), replace(SPEC, duty=0.1))["duty.switches"]

    assert found.status == "skip"
    assert "duty spec of 0.2 or more" in found.detail


def test_the_measure_is_as_long_as_a_burst() -> None:
    assert SWITCH_S == 2.0
