"""Reports that can be trusted, and other duties in the middle of the work, judged from evidence alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import Change, CpuSeen, DutySeen, Wait
from oarbank_conformkit.judge.duty import disturbed, judge_duty, tells_more
from oarbank_conformkit.judge.duty_changes import lower_duty, next_duties
from oarbank_sdk.events import DutyReport
from tests.conformkit.seen import NUDGED, OPENS, SPEC, cpu, duty, judged, report, ticks

NUDGED_AT = OPENS - 1.0
ZERO_AT = NUDGED_AT + 6.2  # nudged; written a second before
AGAIN_AT = ZERO_AT + 2.0
CHANGED = ("duty.reports_true", "duty.reports_timely", "duty.reports_apart", "duty.nudge", "duty.follows", "duty.wakes",
           "duty.switches")  # fmt: skip
LOWER = 0.1  # the duty that follows the 0
ENDS_AT = AGAIN_AT + 3.0  # of its measure


def wall(at: float) -> float:
    return NUDGED + at - NUDGED_AT


def whole(held_at_0: float = 0.0, share: float = 0.3, lower: float = LOWER) -> tuple[Tick, ...]:
    """All ticks of a run: the duty until the nudge to 0, then what is held at 0, then at the lower duty."""
    before = ticks(share, 6.3, start=NUDGED_AT)
    at_0 = ticks(held_at_0, 1.9, start=ZERO_AT + 0.1)
    return (*before, *at_0, *ticks(lower, 3.0, start=AGAIN_AT))


def over(start: float, end: float, held_at_0: float = 0.0, lower: float = LOWER, **other: Any) -> CpuSeen:
    found = whole(held_at_0, lower=lower)
    total_s = sum(tick.gain_s for tick in found if start < tick.t <= end)
    return replace(CpuSeen(start, end, ticks=found, total_s=total_s, waits=(Wait(end, end - NUDGED_AT, 0.0),)), **other)


def zero(held_at_0: float = 0.0, **other: Any) -> Change:
    """A duty of 0, after a second in which it stood there unasked."""
    seen = Change(0.0, wall(ZERO_AT - 1.0), wall(ZERO_AT), wall(ZERO_AT), ZERO_AT, unasked_s={"cpu": 0.24},
                  cpu=over(ZERO_AT + 1.0, ZERO_AT + 2.0, held_at_0))  # fmt: skip
    return replace(seen, **other)


def again(held: float = LOWER, **other: Any) -> Change:
    """The lower duty, with what was held at it."""
    seen = Change(LOWER, wall(AGAIN_AT), wall(AGAIN_AT), wall(AGAIN_AT), AGAIN_AT, unasked_s={"cpu": 0.0},
                  cpu=over(AGAIN_AT + 1.0, ENDS_AT, lower=held), woke_s=0.05, looked_s=0.05)  # fmt: skip
    return replace(seen, **other)


def told(start: float, end: float, share: float = 0.3, **other: Any) -> DutyReport:
    """A report of an interval between two monotonic moments."""
    return report(share, ends_s=end - NUDGED_AT, window_s=end - start, **other)


RIGHT = (
    told(NUDGED_AT, NUDGED_AT + 2.0),
    told(NUDGED_AT + 2.0, NUDGED_AT + 4.0),
    told(NUDGED_AT + 4.0, NUDGED_AT + 6.0),
    told(ZERO_AT + 0.01, AGAIN_AT, 0.0, duty=0.0),
    told(AGAIN_AT + 0.01, AGAIN_AT + 2.05, LOWER, duty=LOWER),
)


def seen(**other: Any) -> DutySeen:
    """A runner that did all of it right."""
    found = duty(reports=RIGHT, changes=(zero(), again()), looked_wall=wall(ENDS_AT + 0.1))
    found = replace(found, **other)
    return found if found.absent_wall else replace(found, absent_wall=tuple(one.t - 0.05 for one in found.reports))


def test_right_runner_passes_every_line() -> None:
    found = judged(seen())

    assert set(CHANGED) <= set(found)
    assert {one.status for one in found.values()} == {"pass"}, found


def test_duties_that_are_given_end_at_0() -> None:
    assert next_duties(0.3) == (0.0, 0.1)
    assert next_duties(0.0) == (0.2,)


@pytest.mark.parametrize(("asked", "lower"), [(1.0, 0.333), (0.3, 0.1), (0.16, 0.053), (0.15, None), (0.02, None)])
def test_a_lower_duty_is_given_where_keeping_the_old_one_would_show(asked: float, lower: float | None) -> None:
    assert lower_duty(asked) == lower
    assert next_duties(asked) == (0.0, asked if lower is None else lower)


LIES = [
    # told, verdict: 0.3 was measured
    (0.3, "pass"),
    (0.21, "pass"),
    (0.19, "fail"),
    (0.0, "fail"),
    (0.39, "pass"),
]


@pytest.mark.parametrize(("share", "verdict"), LIES)
def test_reports_may_tell_of_a_tenth_less_than_was_measured(share: float, verdict: str) -> None:
    lying = told(NUDGED_AT + 2.0, NUDGED_AT + 4.0, share)

    found = judged(seen(reports=(RIGHT[0], lying, *RIGHT[2:])))

    assert found["duty.reports_true"].status == verdict
    assert "duty.reports_seen" not in found


def test_reports_of_more_than_was_measured_are_advice() -> None:
    found = judged(seen(cpu=cpu(0.1), changes=(), reports=(report(0.3), report(0.3, ends_s=4.5))))

    assert found["duty.reports_true"].status == "pass"
    assert found["duty.reports_seen"].status == "warn"
    assert "0.300 where 0.100 was measured" in found["duty.reports_seen"].detail


def test_short_reports_are_compared_together() -> None:
    lying = tuple(told(NUDGED_AT + i * 0.2, NUDGED_AT + (i + 1) * 0.2, 0.1) for i in range(30))

    assert judged(seen(reports=(*lying, *RIGHT[3:])))["duty.reports_true"].status == "fail"


def test_late_ticks_and_waits_leave_the_truth_of_reports_open() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))
    starved = cpu(0.3, waits=waits)

    found = judged(seen(cpu=starved, changes=(), reports=(report(0.3), report(0.3, ends_s=4.5))))

    assert found["duty.reports_true"].status == "unknown"
    assert found["duty.reports_true"].evidence is not None
    assert found["duty.reports_true"].evidence["machine_busy"] is True


def test_reports_without_a_length_cannot_be_compared_and_that_is_no_fault() -> None:
    bare = tuple(replace(one, window_s=None) for one in RIGHT)

    found = judged(seen(reports=bare))

    assert {found[rule].status for rule in ("duty.reports_true", "duty.reports_apart")} == {"skip"}
    assert found["duty.nudge"].status == "pass"  # the measure shows that it went on


TIMES = [
    # what, reports, absent after their end, verdict
    ("on time", RIGHT, 0.05, "pass"),
    ("a long interval", (RIGHT[0], told(NUDGED_AT + 2.0, NUDGED_AT + 6.5), RIGHT[3]), 0.05, "pass"),
    ("none for four seconds", (RIGHT[0], RIGHT[3]), 0.05, "pass"),
    ("none for five seconds", (told(NUDGED_AT, NUDGED_AT + 5.0), RIGHT[3]), 0.05, "fail"),
    ("a long unit", (told(NUDGED_AT, NUDGED_AT + 5.0, longest_unit_s=0.6), RIGHT[3]), 0.05, "pass"),
    ("written a second late", RIGHT, 0.99, "pass"),
    ("written later", RIGHT, 1.01, "fail"),
]


@pytest.mark.parametrize(("what", "reports", "after_s", "verdict"), TIMES, ids=[what for what, *_ in TIMES])
def test_reports_come_in_time(what: str, reports: tuple[DutyReport, ...], after_s: float, verdict: str) -> None:
    found = judged(seen(reports=reports, absent_wall=tuple(one.t + after_s for one in reports)))

    assert found["duty.reports_timely"].status == verdict


def test_late_report_is_excused_by_what_a_busy_machine_took() -> None:
    waited = over(AGAIN_AT + 1.0, ENDS_AT, waits=(Wait(AGAIN_AT, 8.0, 0.7),))

    found = judged(seen(changes=(zero(), again(cpu=waited)), absent_wall=tuple(one.t + 1.5 for one in RIGHT)))

    assert found["duty.reports_timely"].status == "unknown"


SPANS = [
    ("names 0 and began under the duty", (*RIGHT[:3], told(ZERO_AT - 0.5, AGAIN_AT, 0.1, duty=0.0)), "fail"),
    ("names the duty and goes on under 0", (*RIGHT[:2], told(NUDGED_AT + 4.0, ZERO_AT + 1.2), RIGHT[3]), "fail"),
    ("a unit in flight", (*RIGHT[:2], told(NUDGED_AT + 4.0, ZERO_AT + 0.9), RIGHT[3]), "pass"),
    (
        "a long unit in flight",
        (*RIGHT[:2], told(NUDGED_AT + 4.0, ZERO_AT + 1.2, longest_unit_s=0.5), RIGHT[3]),
        "pass",
    ),
    ("never took 0: another rule's matter", (*RIGHT[:3], told(ZERO_AT - 0.5, ZERO_AT + 1.5)), "pass"),
]


@pytest.mark.parametrize(("what", "reports", "verdict"), SPANS, ids=[what for what, *_ in SPANS])
def test_no_report_spans_two_duties(what: str, reports: tuple[DutyReport, ...], verdict: str) -> None:
    found = judged(seen(reports=reports))

    assert found["duty.reports_apart"].status == verdict
    assert found["duty.nudge"].status == "pass"


def test_duty_taken_before_its_nudge_fails_the_nudge_alone() -> None:
    early = told(ZERO_AT - 0.8, AGAIN_AT, 0.0, duty=0.0)

    found = judged(seen(reports=(*RIGHT[:3], early)))

    assert found["duty.nudge"].status == "fail"
    assert "0.80 s before the nudge" in found["duty.nudge"].detail
    assert found["duty.reports_apart"].status == "pass"


def test_nobody_can_tell_of_the_nudge_without_report_and_work() -> None:
    found = judged(seen(reports=RIGHT[:3], changes=(zero(unasked_s={"cpu": 0.0}), again())))

    assert found["duty.nudge"].status == "unknown"


@pytest.mark.parametrize(("held", "verdict"), [(0.0, "pass"), (0.1, "pass"), (0.11, "fail"), (0.3, "fail")])
def test_duty_of_0_is_held_a_second_after_its_nudge(held: float, verdict: str) -> None:
    found = judged(seen(changes=(zero(held), again())))

    assert found["duty.follows"].status == verdict
    assert f"{held:.3f}" in found["duty.follows"].detail


@pytest.mark.parametrize(("waited_s", "verdict"), [(0.0, "fail"), (0.1, "fail"), (0.3, "unknown")])
def test_unit_in_flight_that_waited_for_a_processor_is_not_accused(waited_s: float, verdict: str) -> None:
    waits = (Wait(ZERO_AT + 0.9, 0.9, waited_s), Wait(ZERO_AT + 2.0, 1.0, 0.0))
    starved = over(ZERO_AT + 1.0, ZERO_AT + 2.0, 0.35, waits=waits)

    found = judged(seen(changes=(zero(cpu=starved), again())))

    assert found["duty.follows"].status == verdict


@pytest.mark.parametrize(("waited_s", "verdict"), [(0.0, "fail"), (0.15, "fail"), (0.25, "unknown")])
def test_reported_share_of_a_starved_runner_is_not_accused(waited_s: float, verdict: str) -> None:
    starved = cpu(0.1, waits=(Wait(OPENS + 3.0, 0.1, waited_s),))

    found = judged(duty(reports=(report(0.3), report(0.5, ends_s=4.5)), cpu=starved))

    assert found["duty.reported_share"].status == verdict


def test_uneven_reports_of_long_idles_are_compared_as_a_whole() -> None:
    uneven = (report(0.6, ends_s=3.0, window_s=2.0), report(0.0, ends_s=5.0, window_s=2.0))
    held = cpu(ticks=(*ticks(0.6, 2.0), *ticks(0.0, 2.0, start=OPENS + 2.0)), total_s=1.2)

    assert judged(duty(reports=uneven, cpu=held))["duty.reports_true"].status == "pass"


def test_work_reported_at_duty_0_fails_too() -> None:
    found = judged(seen(reports=(*RIGHT[:3], told(ZERO_AT + 0.01, AGAIN_AT, 0.2, duty=0.0))))

    assert found["duty.follows"].status == "fail"
    assert "reported 0.200 at duty 0" in found["duty.follows"].detail
    assert (found["duty.wakes"].status, found["duty.wakes"].detail) == (
        "skip", "it does not hold a duty of 0, so work after it shows nothing"
    )  # fmt: skip


def test_duty_of_0_is_judged_by_who_can_be_seen() -> None:
    found = judged(seen(reports=tuple(replace(one, device="gpu") for one in RIGHT)))

    assert found["duty.follows"].status == "unknown"
    assert found["duty.wakes"].status == "pass"


NOT_WOKEN = {"woke_s": None, "looked_s": 2.0, "cpu": over(AGAIN_AT, AGAIN_AT + 2.0)}
WAKES = [
    ("no work in two seconds", {"woke_s": None, "looked_s": 2.0}, {}, "fail"),
    ("the machine left it none", NOT_WOKEN, {"waits": 0.6}, "unknown"),
    ("a unit that waited owes ten times as long an idle", NOT_WOKEN, {"waits": 0.15}, "unknown"),
    ("it hardly waited", NOT_WOKEN, {"waits": 0.05}, "fail"),
    ("what it did could not be read", {"woke_s": None, "unasked_s": {}}, {}, "unknown"),
]


@pytest.mark.parametrize(("what", "changes", "more", "verdict"), WAKES, ids=[what for what, *_ in WAKES])
def test_a_larger_duty_ends_a_wait(what: str, changes: dict[str, Any], more: dict[str, Any], verdict: str) -> None:
    change = again(**changes)
    if "waits" in more and change.cpu is not None:
        change = replace(change, cpu=replace(change.cpu, waits=(Wait(AGAIN_AT + 2.0, 2.0, more["waits"]),)))

    assert judged(seen(changes=(zero(), change)))["duty.wakes"].status == verdict


OWED = [
    # the last unit before 0, in seconds before the nudge, waited so long for a processor; verdict
    (2.0, 0.0, "fail"),
    (2.0, 0.2, "fail"),  # at duty 0.1 that is owed 1.8 s, which were over before the nudge
    (2.0, 0.45, "unknown"),
    (6.0, 0.45, "fail"),
    (0.5, 0.3, "unknown"),
]


@pytest.mark.parametrize(("ago_s", "waited_s", "verdict"), OWED)
def test_idle_that_a_starved_unit_owes_is_no_sleep(ago_s: float, waited_s: float, verdict: str) -> None:
    last = AGAIN_AT - ago_s
    looked = over(AGAIN_AT, AGAIN_AT + 2.0, waits=(Wait(last, 0.1, waited_s), Wait(AGAIN_AT + 2.0, 0.1, 0.0)))
    idle = replace(looked, ticks=(Tick(last, 0.005, 0.004), *ticks(0.0, ago_s + 2.0, start=last)))

    change = again(woke_s=None, looked_s=2.0, cpu=idle)

    assert judged(seen(changes=(zero(), change)))["duty.wakes"].status == verdict


RESTS = [
    # seconds without work in the window of 4 s, verdict for a runner that was not seen to wake
    (0.5, "fail"),
    (0.55, "skip"),  # at duty 0.1 such an idle is 2.1 s long
    (4.0, "skip"),
]


@pytest.mark.parametrize(("rest_s", "verdict"), RESTS)
def test_runner_whose_own_idles_outlast_the_wait_need_not_wake(rest_s: float, verdict: str) -> None:
    rested = cpu(ticks=(*ticks(0.3, 4.0 - rest_s), *ticks(0.0, rest_s, start=OPENS + 4.0 - rest_s)), total_s=0.3)

    assert judged(seen(cpu=rested, changes=(zero(), again(woke_s=None))))["duty.wakes"].status == verdict


def test_spec_of_duty_0_is_woken_by_another_one() -> None:
    spec = replace(SPEC, duty=0.0)
    reports = tuple(replace(one, duty=0.0, share=0.0) for one in RIGHT[:3])
    other = replace(zero(), duty=0.2, unasked_s={"cpu": 0.0}, woke_s=0.1)

    found = judged(seen(reports=reports, cpu=cpu(0.0), changes=(other,)), spec)

    assert "duty.follows" not in found
    assert {found["duty.nudge"].status, found["duty.wakes"].status} == {"pass"}
    early = judged(seen(reports=reports, cpu=cpu(0.0), changes=(replace(other, unasked_s={"cpu": 0.1}),)), spec)
    assert early["duty.nudge"].status == "fail"


def test_task_that_finishes_after_its_window_has_nothing_to_show() -> None:
    found = judged(seen(changes=(), left_s=1.2, code=0))

    assert {found[rule].status for rule in ("duty.nudge", "duty.follows", "duty.wakes")} == {"skip"}
    assert "Give it more to do" in found["duty.nudge"].detail


BREAKING = [
    ((zero(),), "duty.follows"),
    ((zero(), again(woke_s=None)), "duty.wakes"),
    ((zero(), again()), "duty.switches"),
]


@pytest.mark.parametrize(("changes", "broken"), BREAKING, ids=[row[1] for row in BREAKING])
def test_task_that_breaks_when_its_duty_changes_fails_that(changes: tuple[Change, ...], broken: str) -> None:
    found = judged(seen(changes=changes, left_s=1.2, code=1, stderr="ZeroDivisionError: float division by zero\n"))

    assert [rule for rule, one in found.items() if one.status == "fail"] == [broken]
    assert "ZeroDivisionError" in found[broken].detail


def test_task_that_finishes_at_the_lower_duty_is_judged_by_what_came_before() -> None:
    found = judged(seen(left_s=1.2, code=0))

    assert {found[rule].status for rule in ("duty.nudge", "duty.follows", "duty.wakes")} == {"pass"}
    assert (found["duty.switches"].status, found["duty.stop"].status) == ("skip", "pass")


def test_only_what_the_machine_kept_from_being_told_is_worth_another_run() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))

    assert disturbed(checks_of(duty(cpu=cpu(0.25, waits=waits))))
    assert not disturbed(checks_of(duty()))
    assert not disturbed(checks_of(duty(reports=(report(device="gpu"),))))
    assert not disturbed(checks_of(duty(reports=(), cpu=cpu(0.25, waits=waits))))


def checks_of(one: DutySeen) -> list[Check]:
    return judge_duty(SPEC, one, cancellable=True)


def test_the_run_that_tells_more_is_kept_and_a_failure_always() -> None:
    right, wrong = checks_of(duty()), checks_of(duty(cpu=cpu(0.9)))
    open_ = checks_of(duty(reports=(report(device="gpu"),)))

    assert tells_more(right, open_)
    assert not tells_more(open_, right)
    assert tells_more(wrong, right)
    assert tells_more(right, right)
