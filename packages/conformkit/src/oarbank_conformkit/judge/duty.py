"""Judge one duty spec: what the runner reported, what the kit measured, whether it stopped.

Pure. Reports count when they began after the duty was written and ended after the settling second; each of them is
judged here; `duty_measured`, `duty_reports` and `duty_changes` judge the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.fixtures import DutySpec
from oarbank_conformkit.judge.duty_changes import judge_changes
from oarbank_conformkit.judge.duty_lines import (
    BEGAN_SLACK_S,
    BURST_TOLERANCE,
    REPORT_WAIT_S,
    SETTLE_S,
    SLACK,
    TOLERANCE,
    Lines,
    limit,
    names,
    used_reports,
)
from oarbank_conformkit.judge.duty_measured import Measured, judge_measured, measured
from oarbank_conformkit.judge.duty_reports import judge_reports, waited_in
from oarbank_conformkit.judge.run import own_words
from oarbank_conformkit.judge.stop import BUSY, judge_duty_stop
from oarbank_sdk.events import DutyReport

__all__ = [
    "BURST_TOLERANCE", "REPORT_WAIT_S", "SETTLE_S", "Measured", "disturbed", "judge_duty", "limit", "measured",
    "tells_more", "used_reports",
]  # fmt: skip


def disturbed(checks: list[Check]) -> bool:
    """Say whether another run may tell more: a busy machine kept a check from being told, and none failed."""
    failed = any(one.status == "fail" for one in checks)
    return not failed and any(
        one.status == "unknown" and BUSY.items() <= (one.evidence or {}).items() for one in checks
    )


def tells_more(again: list[Check], before: list[Check]) -> bool:
    """Say whether another run's checks are the ones to keep: a failure is one, whichever run it is of."""
    return any(one.status == "fail" for one in again) or _unknown(again) <= _unknown(before)


def _unknown(checks: list[Check]) -> int:
    return sum(one.status == "unknown" for one in checks)


def judge_duty(spec: DutySpec, seen: DutySeen, *, cancellable: bool) -> list[Check]:
    """Return all checks of one duty spec."""
    line = Lines(spec)
    fault = _runs_fault(spec, seen)
    if fault is not None:
        why = "not measured: the task did not run until the window closed"
        never = seen.refused is not None or (seen.phase_s is None and bool(seen.code))
        rest = _MEASURED[2:3] if never else _MEASURED  # of a runner that never came to work one line is enough
        return [line("duty.runs", "fail", fault), *(line(rule, "unknown", why) for rule in rest)]
    checks = [line("duty.runs", "pass", f"first phase after {seen.phase_s:.2f} s")]
    used = used_reports(seen)
    checks += [_reports(line, seen, used), _reported(line, seen, used), *judge_measured(line, seen, used)]
    checks += [*judge_reports(line, seen, used), *judge_changes(line, seen, used), *_units(line, seen, used)]
    if not cancellable:
        why = "the runner does not declare cancellable, so the kit ended it after the measure"
        checks.append(line("duty.stop", "skip", why))
    elif seen.stop is not None:
        checks.append(judge_duty_stop(line.title, seen.stop))
    return checks


_MEASURED = ("duty.reports", "duty.reported_share", "duty.measured_share", "duty.burst", "duty.stop")


# ---- did it run -----------------------------------------------------------------------------------------


def _runs_fault(spec: DutySpec, seen: DutySeen) -> str | None:
    if seen.refused is not None:
        return f"must start; {seen.refused}. Look at runner.exec in the manifest."
    code = "" if seen.code is None else f" with {_code(seen.code)}"
    words = own_words(seen.failure, seen.stderr)
    if seen.phase_s is None:
        if seen.code is None:
            return f"must write its first phase; found none after {seen.limit_s:g} s"
        if seen.code:
            return f"must run; it ended{code} after {seen.lasted_s:.1f} s, before its first phase{words}"
        return f"must write its first phase; it ended{code} after {seen.lasted_s:.1f} s without one{words}"
    if seen.ended_s is not None:
        must = f"must run for {SETTLE_S + spec.window_s:g} s after its duty was set"
        advice = "" if seen.code else ". Give the task more to do"
        return f"{must}; it ended{code} after {seen.ended_s:.1f} s{advice}{words}"
    return None


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


# ---- what it reported -----------------------------------------------------------------------------------


def _reports(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Check:
    duty = line.spec.duty
    if seen.unusable:
        more = f" ({len(seen.unusable)} such events)" if len(seen.unusable) > 1 else ""
        return line("duty.reports", "fail", f"every gpu_duty event must be usable; {seen.unusable[0]}{more}")
    if not used:
        if abs(seen.clock_step_s) > BEGAN_SLACK_S:
            return line(
                "duty.reports", "unknown", f"the clock of this machine was set by {seen.clock_step_s:+.2f} s meanwhile"
            )
        if seen.reports:
            detail = f"must write one that began after the nudge; found {len(seen.reports)} that began or ended before"
        else:
            must = "must write gpu_duty events to its events file; found none after the nudge"
            detail = f"{must}. Put the work inside duty.unit(), and give Duty the events path."
        return line("duty.reports", "fail", detail)
    wrong = [report for report in used if not names(report, duty)]
    if wrong:
        told = "none" if wrong[0].duty is None else f"{wrong[0].duty:g}"
        return line(
            "duty.reports", "fail", f"a report must name the duty asked, {duty:g}; found {told}", {"asked": duty}
        )
    listed = ", ".join(f"{report.share:.3f}" for report in used)
    longest = [report.longest_unit_s for report in used if report.longest_unit_s is not None]
    units = f"; longest unit {max(longest) * 1000:.1f} ms" if longest else ""
    return line("duty.reports", "pass", f"{len(used)} at duty {duty:g}, device {_devices(used)}: {listed}{units}")


def _reported(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Check:
    rule = "duty.reported_share"
    if not used:
        return line(rule, "unknown", "there is no report to judge")
    worst = max(report.share for report in used)
    evidence = {"limit": line.limit, "reported": [report.share for report in used]}
    sentence = f"reported at most {worst:.3f}; at most {line.limit:g} is allowed"
    over = [report for report in used if report.share > line.spec.duty + TOLERANCE + SLACK]
    if not over:
        return line(rule, "pass", sentence, evidence)
    if all(_starved(line, seen, report) for report in over):
        why = "its units waited for a processor for longer than they took too much"
        return line(rule, "unknown", f"{sentence}, but {why}", evidence | BUSY)
    return line(rule, "fail", sentence, evidence)


def _starved(line: Lines, seen: DutySeen, report: DutyReport) -> bool:
    """Whether a busy machine explains a report: the time of a unit also holds what it waited for a processor."""
    over_s = (report.share - line.spec.duty - TOLERANCE) * (report.window_s or 0.0)
    return 0.0 < over_s <= waited_in(seen, report)


def _devices(used: list[DutyReport]) -> str:
    return ", ".join(sorted({report.device for report in used}))


def _units(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    if line.spec.duty > 0.0 and used and all(report.share == 0.0 for report in used):
        detail = f"at duty {line.spec.duty:g} no report tells of a unit; idling always passes and proves little"
        yield line("duty.units", "warn", detail)
