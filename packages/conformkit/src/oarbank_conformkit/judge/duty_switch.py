"""Whether a lower duty above 0 that follows another is held, and named: a runner may keep the first that it was given.

Pure. Two seconds of measure are few for a runner of long units: they may hold as much as the duty and a burst. So the
kit reckons from its own ticks how long this runner's bursts are, in the window and in the two seconds themselves, and
allows what they explain. Where a runner that kept its old duty could be within that, nothing is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import Change, CpuSeen, DutySeen, GpuSeen
from oarbank_conformkit.judge.duty_lines import BEGAN_SLACK_S, SLACK, TOLERANCE, Lines, began, names
from oarbank_conformkit.judge.duty_measured import Measured, judge_share, measured
from oarbank_conformkit.judge.duty_reports import waited_in
from oarbank_conformkit.judge.stop import BUSY
from oarbank_conformkit.shares import booked_when_run, swing_s
from oarbank_sdk.events import DutyReport

SWITCH_S = 2.0
"""How long the measure of the lower duty lasts, after the settling second."""

CREDIT = 0.01
"""Share of SWITCH_S that a runner may gain by repaying a late wake-up."""

RULE = "duty.switches"

NOWHERE = "there is no report that says where the units run"


@dataclass(frozen=True, slots=True)
class _Room:
    """What one device leaves open."""

    burst_s: float  # the longest that the kit's ticks allow for; inf where they tell nothing
    allowed: float  # share in the measure of the lower duty that such bursts explain
    kept: float  # the least that a runner which went on as in the window would hold, on a free machine


def judge_switch(line: Lines, seen: DutySeen, change: Change, used: list[DutyReport], woke: Check) -> Check:
    """Return the check of the lower duty of `change`; `woke` is the check of its way up."""
    if change.woke_s is None:
        why = f"no work was seen at duty {change.duty:g}: {woke.detail}"
        return line(RULE, "skip" if woke.status == "skip" else "unknown", why)
    before = judge_share(line, RULE, seen, used, line.spec.duty)
    if before.status == "fail":
        return line(RULE, "skip", f"it does not hold duty {line.spec.duty:g}, so another one shows nothing")
    if (misnamed := _misnamed(line, seen, change)) is not None:
        return misnamed
    if before.status == "unknown" or not used:
        return line(RULE, "unknown", before.detail if used else NOWHERE, before.evidence)
    window = measured(seen, used)
    after = replace(seen, cpu=change.cpu, gpu=change.gpu)
    devices = [replace(report, share=0.0) for report in used]
    rooms = [_room(line.spec.duty, seen, change, one) for one in window]
    if (told := _told(line, seen, change, max(room.burst_s for room in rooms))) is not None:
        return told
    allowed = max(room.allowed for room in rooms)
    found = judge_share(line, RULE, after, devices, change.duty, tolerance=allowed - change.duty)
    if found.status == "fail" or any(room.kept > allowed + SLACK for room in rooms):
        return found
    worst = max(rooms, key=lambda room: room.kept)
    told_apart = f"duty {line.spec.duty:g} and duty {change.duty:g} cannot be told apart in {SWITCH_S:g} s"
    bursts = "" if worst.burst_s > SWITCH_S else f" of up to {worst.burst_s:.2f} s"
    why = f"{told_apart}: it held {_held(window):.3f} in the window, in bursts{bursts}"
    return line(RULE, "skip", f"{why}. Shorter units, or a larger duty, can be")


def _held(window: list[Measured]) -> float:
    return max((one.shares.mean.held for one in window if one.shares is not None), default=0.0)


# ---- what it says --------------------------------------------------------------------------------------------


def _after(seen: DutySeen, change: Change) -> list[DutyReport]:
    """Reports of time after the nudge alone; 0 is what was held before, and a runner still waits there."""
    listed = [report for report in seen.reports if began(report) >= change.nudging_wall - BEGAN_SLACK_S]
    return [report for report in listed if not names(report, 0.0)]


def _misnamed(line: Lines, seen: DutySeen, change: Change) -> Check | None:
    for report in _after(seen, change):
        if not names(report, change.duty):
            told = "none" if report.duty is None else f"{report.duty:g}"
            detail = (
                f"a report must name the duty in force, {change.duty:g} after {line.spec.duty:g} and 0; found {told}"
            )
            return line(RULE, "fail", detail)
    return None


def _told(line: Lines, seen: DutySeen, change: Change, burst_s: float) -> Check | None:
    """A report of the lower duty that holds too much of it; None where there is none."""
    for report in _after(seen, change):
        if not report.window_s:
            continue
        allowed = _allowed(change.duty, burst_s, report.window_s)
        over_s = (report.share - allowed) * report.window_s
        if over_s <= SLACK:
            continue
        detail = f"reported {report.share:.3f} at duty {change.duty:g}; at most {allowed:.3g} is allowed"
        if over_s > waited_in(seen, report):
            return line(RULE, "fail", detail)
        why = "its units waited for a processor for longer than they took too much"
        return line(RULE, "unknown", f"{detail}, but {why}", BUSY)
    return None


# ---- what it may hold ------------------------------------------------------------------------------------------


def _room(duty: float, seen: DutySeen, change: Change, one: Measured) -> _Room:
    """What bursts of this runner explain at the lower duty, and what it would hold at the old one."""
    before = seen.cpu if one.device == "cpu" else seen.gpu
    after = change.cpu if one.device == "cpu" else change.gpu
    if one.shares is None or before is None or after is None or duty >= 1.0:
        return _Room(float("inf"), 1.0, 0.0)
    # At the old duty's rate the bursts of either duty stand out, and a duty that was kept does not.
    spans = [(_ticks(found), found.start, found.end) for found in (before, after)]
    ahead_s = max(swing_s(*span, duty)[0] for span in spans)
    burst_s = (ahead_s + one.shares.tick_median_s) / (1.0 - duty)
    _, behind_s = swing_s(*spans[0], one.shares.mean.held)
    allowed = _allowed(change.duty, burst_s, after.end - after.start)
    # What is cleared is what the runner would have held on a free machine, here as there.
    return _Room(burst_s, allowed, one.shares.mean.wanted - behind_s / SWITCH_S)


def _allowed(duty: float, burst_s: float, length_s: float) -> float:
    """The largest share of some time that a duty, held by bursts of a length, explains; never less than the usual."""
    return min(duty + max(TOLERANCE, burst_s * (1.0 - duty) / max(length_s, SLACK) + CREDIT), 1.0)


def _ticks(found: CpuSeen | GpuSeen) -> Sequence[Tick]:
    """The ticks of a measure; what could not be read may have been a burst."""
    if isinstance(found, CpuSeen):
        return found.ticks
    booked = zip(booked_when_run(found.ticks), found.ticks, strict=True)
    return [Tick(tick.t, tick.dt_s, tick.dt_s if read.gain_s is None else tick.gain_s) for tick, read in booked]
