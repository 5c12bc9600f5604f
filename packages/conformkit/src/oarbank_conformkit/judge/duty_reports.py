"""Whether a runner's reports can be trusted: true, in time, and each of one duty.

Pure. Nothing is asked of a runner without reports, which has failed `duty.reports` already. A share that is told too
low deceives whoever gives out the device; one that is told too high costs the runner alone, since the time of a unit
also holds what it waited for: that is advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import Change, CpuSeen, DutySeen, GpuSeen
from oarbank_conformkit.judge.duty_lines import (
    BEGAN_SLACK_S,
    SETTLE_S,
    TOLERANCE,
    Lines,
    began,
    longest_unit_s,
    names,
    took_early,
)
from oarbank_conformkit.judge.duty_measured import measured
from oarbank_conformkit.judge.stop import BUSY
from oarbank_conformkit.shares import Shares, gpu_shares, shares
from oarbank_sdk.events import DutyReport

JUDGED_S = 1.0
"""Reports that follow each other are compared with the measure over this much time, or their own where it is more."""

COVERED = 0.9
"""Part of it that the measure must cover."""

APART_S = 4.0
"""Longest time from one report to the next: a cycle is let end, up to here."""

LATE_S = 0.5
"""What a late wake-up may add to that."""

WRITTEN_S = 1.0
"""Longest time from the end of a report's interval until it stands in the file: the agent judges every two seconds."""

NO_LENGTH = "no report says how long its interval was. Give each its window_s."


def judge_reports(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    """Give the checks of the reports themselves; none where there is no report to judge."""
    if not used:
        return
    yield from _true(line, seen, used)
    yield _timely(line, seen)
    if seen.changes:
        yield _apart(line, seen)


# ---- true -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Reports that follow each other, as one: Unix seconds, and the share they tell of together."""

    start: float
    end: float
    told: float


def _true(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    rule = "duty.reports_true"
    device = "cpu" if all(report.device == "cpu" for report in used) else "gpu"
    cpu, gpu = _whole(seen)
    if (device == "cpu" and (cpu is None or cpu.unknown is not None)) or (device == "gpu" and gpu is None):
        yield line(rule, "unknown", f"what the {device} did could not be read, so there is nothing to compare with")
        return
    if not _with_length(used):
        yield line(rule, "skip", NO_LENGTH)
        return
    compared = [(one, found) for one in _stretches(used) if (found := _shares(seen, one, device)) is not None]
    if not compared:
        yield line(rule, "unknown", f"no reports cover {JUDGED_S:g} s that were measured too")
        return
    low, found = max(compared, key=lambda pair: pair[1].mean.sure - pair[0].told)
    told = f"reports tell of {low.told:.3f} where {found.mean.held:.3f} was measured, over {low.end - low.start:.1f} s"
    evidence: dict[str, object] = {"told": round(low.told, 6), "held": round(found.mean.held, 6)}
    evidence["waited_s"] = None if found.waited_s is None else round(found.waited_s, 3)
    if found.mean.sure - low.told > TOLERANCE:
        yield line(rule, "fail", f"{told}; at most {TOLERANCE:g} less is allowed", evidence)
    elif (wanted := _wanted(seen, used, device)) - (mean := _mean_told(one for one, _ in compared)) > TOLERANCE:
        why = f"on a free machine it may be as much as {wanted:.3f} in the window, and they tell of {mean:.3f}"
        yield line(rule, "unknown", f"{told}, but {why}", evidence | BUSY)
    else:
        yield line(rule, "pass", told, evidence)
    high, found = max(compared, key=lambda pair: pair[0].told - pair[1].mean.wanted)
    if device == "cpu" and high.told - found.mean.wanted > TOLERANCE:
        detail = f"reports tell of {high.told:.3f} where {found.mean.held:.3f} was measured: units that wait, not work"
        yield line("duty.reports_seen", "warn", detail)


def _mean_told(stretches: Iterable[_Stretch]) -> float:
    listed = list(stretches)
    return sum(one.told * (one.end - one.start) for one in listed) / sum(one.end - one.start for one in listed)


def _wanted(seen: DutySeen, used: list[DutyReport], device: str) -> float:
    """What may have been held in the window on a free machine; 0.0 where that is judged to be unknown elsewhere."""
    found = (one.shares for one in measured(seen, used) if one.device == device)
    return max((one.mean.wanted for one in found if one is not None), default=0.0)


def _whole(seen: DutySeen) -> tuple[CpuSeen | None, GpuSeen | None]:
    """The measure with the most ticks: the last one that was taken."""
    cpus = [seen.cpu, *(change.cpu for change in seen.changes)]
    gpus = [seen.gpu, *(change.gpu for change in seen.changes)]
    return (
        next((one for one in reversed(cpus) if one is not None), None),
        next((one for one in reversed(gpus) if one is not None), None),
    )


def _stretches(used: Sequence[DutyReport]) -> Iterator[_Stretch]:
    """Reports one after another, gathered until they make JUDGED_S."""
    start = busy_s = 0.0
    end = float("-inf")
    for report in used:
        if report.window_s is None:
            continue
        if abs(began(report) - end) > BEGAN_SLACK_S:
            start, busy_s = began(report), 0.0
        end = report.t
        busy_s += report.share * report.window_s
        if end - start >= JUDGED_S:
            yield _Stretch(start, end, busy_s / (end - start))
            start, busy_s = end, 0.0


def _shares(seen: DutySeen, one: _Stretch, device: str) -> Shares | None:
    """What was measured over a stretch; None where too little of it was."""
    if seen.nudged is None:
        return None
    cpu, gpu = _whole(seen)
    back = seen.nudged - seen.nudged_wall
    start, end = one.start + back, one.end + back
    waits = None if cpu is None else cpu.waits
    if device == "cpu":
        found = None if cpu is None else shares(cpu.ticks, start, end, total_s=None, waits=waits)
    else:
        found = None if gpu is None else gpu_shares(gpu.ticks, start, end, waits=waits)
    return None if found is None or found.covered_s < COVERED * (end - start) else found


# ---- in time ----------------------------------------------------------------------------------------------


def _timely(line: Lines, seen: DutySeen) -> Check:
    rule = "duty.reports_timely"
    allowed_s = APART_S + LATE_S + longest_unit_s(seen)
    gap_s, since = max(_gaps(seen), key=lambda pair: pair[0])
    late_s = max((absent - report.t for report, absent in zip(seen.reports, seen.absent_wall, strict=False)), default=0)
    waited_s = _waited_s(seen)
    evidence: dict[str, object] = {
        "longest_s": round(gap_s, 3),
        "limit": round(allowed_s, 3),
        "late_s": round(late_s, 3),
        "waited_s": round(waited_s, 3),
    }
    if late_s > WRITTEN_S:
        detail = f"a report must stand in the file {WRITTEN_S:g} s after its end; found one that did not after "
        return _excused(line, rule, f"{detail}{late_s:.2f} s", late_s - waited_s > WRITTEN_S, evidence)
    if gap_s > allowed_s:
        detail = f"at most {allowed_s:.1f} s may pass without a report; found {gap_s:.1f} s after {since}"
        return _excused(line, rule, detail, gap_s - waited_s > allowed_s, evidence)
    return line(rule, "pass", f"at most {gap_s:.1f} s without one; {allowed_s:.1f} s are allowed", evidence)


def _excused(line: Lines, rule: str, detail: str, sure: bool, evidence: dict[str, object]) -> Check:
    if sure:
        return line(rule, "fail", detail, evidence)
    return line(rule, "unknown", f"{detail}, and a busy machine took {evidence['waited_s']} s", evidence | BUSY)


def _gaps(seen: DutySeen) -> Iterator[tuple[float, str]]:
    """How long there was no report, under each duty: from its nudge, from report to report, to the next nudge."""
    for start, end in _periods(seen):
        ends = sorted(report.t for report in seen.reports if start < report.t <= end)
        marks = [start, *ends, end]
        for i, (before, after) in enumerate(pairwise(marks)):
            yield after - before, "a nudge" if i == 0 else "the last one"


def _periods(seen: DutySeen) -> list[tuple[float, float]]:
    starts = [seen.nudged_wall, *(change.nudged_wall for change in seen.changes)]
    ends = [*(change.nudging_wall for change in seen.changes), seen.looked_wall]
    return [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]


def waited_in(seen: DutySeen, report: DutyReport) -> float:
    """Return how long the runner waited for a processor in a report's interval, in seconds; 0.0 where nobody knows."""
    cpu, _ = _whole(seen)
    if cpu is None or cpu.waits is None or seen.nudged is None:
        return 0.0
    back = seen.nudged - seen.nudged_wall
    start, end = began(report) + back, report.t + back
    return sum(wait.wait_s for wait in cpu.waits if start < wait.t <= end + wait.dt_s)


def _waited_s(seen: DutySeen) -> float:
    cpu, _ = _whole(seen)
    return 0.0 if cpu is None or cpu.waits is None else sum(wait.wait_s for wait in cpu.waits)


# ---- each of one duty -------------------------------------------------------------------------------------


def _apart(line: Lines, seen: DutySeen) -> Check:
    """No report may name one duty for a time in which another one was held for certain."""
    rule = "duty.reports_apart"
    if not _with_length(seen.reports):
        return line(rule, "skip", NO_LENGTH)
    spans = list(_spans(line.spec.duty, seen))
    if not spans:
        return line(rule, "pass", f"{len(seen.reports)} reports, {len(seen.changes)} changes of duty")
    report, other = spans[0]
    told = f"one of {report.window_s:.1f} s names {report.duty:g} and holds time of duty {other:g}"
    return line(rule, "fail", f"an interval must end where the duty changes; found {told}")


def _spans(duty: float, seen: DutySeen) -> Iterator[tuple[DutyReport, float]]:
    """Reports that cross a change by more than a unit in flight explains, with the other duty."""
    settled_s = SETTLE_S + longest_unit_s(seen)
    before = duty
    for change in seen.changes:
        crossing = [one for one in _with_length(seen.reports) if began(one) < change.nudging_wall - BEGAN_SLACK_S]
        for report in crossing:
            early = names(report, change.duty) and report.t > change.nudging_wall
            if early and not took_early(report, change) and _held(seen, before):
                yield report, before
            elif names(report, before) and report.t > change.nudged_wall + settled_s and _taken(seen, change):
                yield report, change.duty
        before = change.duty


def _with_length(reports: Iterable[DutyReport]) -> list[DutyReport]:
    return [report for report in reports if report.window_s is not None]


def _held(seen: DutySeen, duty: float) -> bool:
    """Whether the runner ever held a duty, by its reports; one that did not breaks another rule."""
    return any(names(report, duty) for report in seen.reports)


def _taken(seen: DutySeen, change: Change) -> bool:
    """Whether it took the duty of a change."""
    return any(names(report, change.duty) and report.t > change.nudging_wall for report in seen.reports)
