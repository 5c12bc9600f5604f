"""A duty spec judged from evidence alone: limits to the digit, and who is accused of what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarbank_conformkit.evidence import StopSeen, Wait
from oarbank_conformkit.judge.duty import used_reports
from tests.conformkit.seen import OPENS, SPEC, cpu, duty, judged, report, statuses, ticks

ALL = ("duty.runs", "duty.reports", "duty.reported_share", "duty.measured_share", "duty.burst", "duty.reports_true",
       "duty.reports_timely", "duty.stop")  # fmt: skip


def test_right_runner_passes_every_line() -> None:
    assert statuses(duty()) == dict.fromkeys(ALL, "pass")


def test_lines_are_named_as_people_look_for_them() -> None:
    names = {rule: one.name for rule, one in judged(duty()).items()}

    assert names["duty.reports"] == "duty spec held: reports the duty it held"
    assert names["duty.reported_share"] == "duty spec held: reported share within 0.4"
    assert names["duty.measured_share"] == "duty spec held: measured share within 0.4"
    assert names["duty.burst"] == "duty spec held: no burst over 0.45 in any 2 s"
    assert names["duty.stop"] == "duty spec held: stops while holding the duty"


REPORTED = [
    # duty, reported, expected
    (0.3, 0.30, "pass"),
    (0.3, 0.40, "pass"),  # exactly the duty and 0.1
    (0.3, 0.41, "fail"),
    (0.1, 0.2, "pass"),  # 0.1 + 0.1 and 0.7 + 0.1 are not what they look like in binary
    (0.7, 0.8, "pass"),
    (0.0, 0.1, "pass"),
    (0.0, 0.11, "fail"),
    (1.0, 1.0, "pass"),
]


@pytest.mark.parametrize(("asked", "share", "expected"), REPORTED)
def test_reported_share_is_held_to_the_duty_and_a_tenth(asked: float, share: float, expected: str) -> None:
    seen = duty(reports=(report(share, duty=asked),))

    found = judged(seen, replace(SPEC, duty=asked))["duty.reported_share"]

    assert found.status == expected
    assert f"{share:.3f}" in found.detail
    assert f"{round(asked + 0.1, 6):g}" in found.detail


@pytest.mark.parametrize(("asked", "share", "expected"), REPORTED)
def test_measured_share_is_held_to_the_same_limit(asked: float, share: float, expected: str) -> None:
    seen = duty(reports=(report(0.0, duty=asked),), cpu=cpu(share))

    found = judged(seen, replace(SPEC, duty=asked))["duty.measured_share"]

    assert found.status == expected
    assert f"{share:.3f}" in found.detail
    assert f"{round(asked + 0.1, 6):g}" in found.detail


@pytest.mark.parametrize(("share", "expected"), [(0.45, "pass"), (0.46, "fail")])
def test_burst_is_held_to_the_duty_and_0_15(share: float, expected: str) -> None:
    gentle = ticks(0.1, 2.0)
    harsh = ticks(share, 2.0, start=OPENS + 2.0)
    seen = duty(cpu=cpu(ticks=(*gentle, *harsh), total_s=2.0 * (0.1 + share)))

    found = judged(seen)

    assert found["duty.burst"].status == expected
    assert found["duty.measured_share"].status == "pass"


def test_each_report_is_judged_not_their_mean() -> None:
    seen = duty(reports=(report(0.0), report(0.41, ends_s=4.5)))

    assert statuses(seen)["duty.reported_share"] == "fail"


UNUSED = [
    ("began before the nudge, at any share", report(1.0, ends_s=1.5, window_s=2.0)),
    ("ended before the nudge", report(1.0, ends_s=-1.0, window_s=2.0)),
    ("ended in the settling second: the unit in flight", report(1.0, ends_s=0.9, window_s=0.9)),
    ("says no length and ended too soon to have begun after the nudge", report(1.0, ends_s=2.4, window_s=None)),
]


@pytest.mark.parametrize(("why", "unused"), UNUSED, ids=[why for why, _ in UNUSED])
def test_report_that_is_not_of_this_duty_is_not_judged(why: str, unused: Any) -> None:
    seen = duty(reports=(unused, report(ends_s=4.5)))

    assert used_reports(seen) == [report(ends_s=4.5)]
    assert statuses(seen) == dict.fromkeys(ALL, "pass")


def test_report_without_a_length_counts_once_it_must_have_begun_after_the_nudge() -> None:
    seen = duty(reports=(report(0.41, ends_s=2.5, window_s=None),))

    assert statuses(seen)["duty.reported_share"] == "fail"


def test_report_that_began_at_the_nudge_within_rounding_counts() -> None:
    seen = duty(reports=(report(ends_s=1.96, window_s=2.0),))

    assert statuses(seen)["duty.reports"] == "pass"


def test_no_report_fails_and_its_share_is_unknown() -> None:
    found = judged(duty(reports=()))

    assert found["duty.reports"].status == "fail"
    assert "found none" in found["duty.reports"].detail
    assert found["duty.reported_share"].status == "unknown"


def test_report_that_came_too_early_alone_fails_and_says_so() -> None:
    found = judged(duty(reports=(report(ends_s=1.0),)))

    assert found["duty.reports"].status == "fail"
    assert "began or ended before" in found["duty.reports"].detail


def test_clock_that_was_set_excuses_missing_reports() -> None:
    found = judged(duty(reports=(report(ends_s=-3600.0),), clock_step_s=-3600.0))

    assert found["duty.reports"].status == "unknown"
    assert "-3600.00 s" in found["duty.reports"].detail


@pytest.mark.parametrize(("told", "shown"), [(0.5, "0.5"), (None, "none"), (0.3011, "0.3011")])
def test_report_of_another_duty_fails_with_both_numbers(told: float | None, shown: str) -> None:
    found = judged(duty(reports=(report(), report(duty=told, ends_s=4.5))))

    assert found["duty.reports"].status == "fail"
    assert "0.3;" in found["duty.reports"].detail
    assert shown in found["duty.reports"].detail


def test_asked_duty_may_be_rounded() -> None:
    assert statuses(duty(reports=(report(duty=0.3009),)))["duty.reports"] == "pass"


def test_unusable_event_fails_with_its_reason() -> None:
    found = judged(duty(unusable=("gpu_duty event: value must be a number from 0 to 1; found True",)))

    assert found["duty.reports"].status == "fail"
    assert "found True" in found["duty.reports"].detail


def test_device_that_cannot_be_read_is_unknown_and_reports_are_still_judged() -> None:
    found = judged(duty(reports=(report(0.41, device="gpu"),)))

    assert found["duty.measured_share"].status == "unknown"
    assert found["duty.burst"].status == "unknown"
    assert "no GPU source" in found["duty.measured_share"].detail
    assert found["duty.measured_share"].detail.endswith('make the governor with device="cpu".')
    assert found["duty.reported_share"].status == "fail"


def test_unknown_device_is_treated_as_a_gpu() -> None:
    assert statuses(duty(reports=(report(device="npu"),)))["duty.measured_share"] == "unknown"


def test_processor_time_over_the_limit_fails_without_any_report() -> None:
    found = statuses(duty(reports=(), cpu=cpu(0.9)))

    assert found["duty.measured_share"] == "fail"
    assert found["duty.burst"] == "fail"


def test_processor_time_within_the_limit_proves_nothing_without_a_report() -> None:
    assert statuses(duty(reports=()))["duty.measured_share"] == "unknown"


def test_unreadable_process_is_unknown_with_the_reason() -> None:
    found = judged(duty(cpu=cpu(unknown="pid 7: hidden")))

    assert found["duty.measured_share"].status == "unknown"
    assert "pid 7: hidden" in found["duty.measured_share"].detail


def test_window_that_the_kit_could_not_cover_is_unknown() -> None:
    found = judged(duty(cpu=cpu(ticks=ticks(0.9, 3.0))))

    assert found["duty.measured_share"].status == "unknown"
    assert "3.0 s of 4.0 s" in found["duty.measured_share"].detail


def test_share_held_only_for_want_of_a_processor_is_unknown_with_figures() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))

    found = judged(duty(cpu=cpu(0.25, waits=waits)))

    assert found["duty.measured_share"].status == "unknown"
    assert "0.450" in found["duty.measured_share"].detail
    assert "waited 0.80 s" in found["duty.measured_share"].detail


def test_starved_runner_far_below_its_duty_still_passes() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.01) for i in range(40))

    assert statuses(duty(cpu=cpu(0.2, waits=waits)))["duty.measured_share"] == "pass"


def test_share_above_the_limit_fails_however_busy_the_machine() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.03) for i in range(40))

    assert statuses(duty(cpu=cpu(0.6, waits=waits)))["duty.measured_share"] == "fail"


def test_idling_all_the_time_is_a_warning() -> None:
    found = judged(duty(reports=(report(0.0),), cpu=cpu(0.0)))

    assert found["duty.units"].status == "warn"
    assert "fail" not in {one.status for one in found.values()}


def test_idling_at_duty_0_is_right() -> None:
    found = statuses(duty(reports=(report(0.0, duty=0.0, ends_s=4.5),), cpu=cpu(0.0)), replace(SPEC, duty=0.0))

    assert found == dict.fromkeys(ALL, "pass")


def test_runner_that_is_not_cancellable_is_not_judged_on_its_end() -> None:
    assert statuses(duty(stop=None), cancellable=False)["duty.stop"] == "skip"


NOT_RUN = [
    ("no phase", {"phase_s": None, "code": 0, "lasted_s": 0.7}, "after 0.7 s without one"),
    ("no phase at the limit", {"phase_s": None, "limit_s": 60.0}, "found none after 60 s"),
    (
        "ended early",
        {"ended_s": 2.2, "code": 0},
        "must run for 5 s after its duty was set; it ended with exit 0 after 2.2 s",
    ),
    (
        "died early",
        {"ended_s": 0.2, "code": -11, "stderr": "boom\n"},
        "signal 11 after 0.2 s; last line of stderr: boom",
    ),
    ("crashed", {"phase_s": None, "code": 1, "lasted_s": 0.1}, "must run; it ended with exit 1 after 0.1 s, before"),
    ("did not start", {"refused": "No such file or directory"}, "No such file or directory"),
]


@pytest.mark.parametrize(("why", "changes", "sentence"), NOT_RUN, ids=[why for why, *_ in NOT_RUN])
def test_task_that_cannot_be_measured_fails_one_rule(why: str, changes: dict[str, Any], sentence: str) -> None:
    found = judged(duty(**changes))

    assert found["duty.runs"].status == "fail"
    assert sentence in found["duty.runs"].detail
    assert {one.status for rule, one in found.items() if rule != "duty.runs"} == {"unknown"}


def test_task_that_never_came_to_work_is_two_lines_without_advice() -> None:
    found = judged(duty(phase_s=None, code=1, stderr="SyntaxError: x\n"))

    assert {rule: one.status for rule, one in found.items()} == {"duty.runs": "fail", "duty.measured_share": "unknown"}
    assert found["duty.runs"].detail.endswith("before its first phase; last line of stderr: SyntaxError: x")


def test_task_that_is_too_short_is_told_to_do_more_and_one_that_died_is_not() -> None:
    assert "more to do" in judged(duty(ended_s=2.2, code=0))["duty.runs"].detail
    assert "more to do" not in judged(duty(ended_s=2.2, code=1))["duty.runs"].detail


def test_stop_while_holding_is_one_line_and_the_worse_half_speaks() -> None:
    late = StopSeen("stopped", 20.0, ack="failure", ack_s=2.2, absent_s=2.195, exit_s=2.21, alive_s=2.2, code=75)

    found = judged(duty(stop=late))["duty.stop"]

    assert found.status == "fail"
    assert "2.200 s" in found.detail
