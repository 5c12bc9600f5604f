"""How a runner takes another duty while it works: after a nudge alone, downwards within a second, upwards at once.

Pure. After the window the kit writes a duty of 0 and waits a second before it nudges; a second after the nudge nothing
may be held any more. Then it gives a duty that is clearly lower than the spec's, and the runner must wake and hold that
(`duty_switch`). Where the spec's duty leaves no room below it, it is given back itself; where it is 0, a small one is
written and must wake the runner. A task that finishes in between has nothing to show; one that breaks has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from oarbank_conformkit.checks import ENDED_EARLY, Check
from oarbank_conformkit.evidence import Change, DutySeen
from oarbank_conformkit.judge.duty_lines import (
    BEGAN_SLACK_S,
    SLACK,
    TOLERANCE,
    WAKE_S,
    Lines,
    began,
    limit,
    names,
    took_early,
)
from oarbank_conformkit.judge.duty_measured import judge_share, measured
from oarbank_conformkit.judge.duty_switch import judge_switch
from oarbank_conformkit.judge.run import own_words
from oarbank_conformkit.judge.stop import BUSY
from oarbank_sdk.events import DutyReport

OTHER_DUTY = 0.2
"""What a runner is given that was given a duty of 0: enough to see it work."""

LOWER = 3
"""The duty that follows the 0 is the spec's by so much: far enough below it, and idles that still end in time."""

UNASKED_S = 1.0
"""How long another duty stands in the control document before the nudge."""

LOOKED_S = 0.8
"""The last part of that, in which a runner that read it would have changed."""

HELD_S = 1.0
"""How long the measure of a duty of 0 lasts, after the settling second: any work in it is too much."""

WORK_S = 0.005
"""So much work is a unit: to be nudged, to read a document and to write a report take less than a millisecond."""

WORKED_S = 0.0005
"""Less than this in one tick may be anything."""

STILL = 0.2
"""Part of the duty that a runner must hold to have shown that it works on."""

UNIT_S = 2.0
"""So long before its end a unit of a starved runner is taken to have begun, at the most."""

LATE_S = 0.2
"""Between the end of an idle and work that is seen."""

MORE_S = 0.5
"""A runner that waited so long for a processor may have had no chance to wake, whatever its duty."""


def next_duties(duty: float) -> tuple[float, ...]:
    """Return the duties that are given after the window, in order; the first stands a while before its nudge."""
    if duty == 0.0:
        return (OTHER_DUTY,)
    return (0.0, duty if (lower := lower_duty(duty)) is None else lower)


def lower_duty(duty: float) -> float | None:
    """Return the lower duty above 0 that follows one; None where a runner that kept `duty` would be within limits."""
    lower = round(duty / LOWER, 3)
    return lower if lower + TOLERANCE < duty else None


def judge_changes(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    """Give the checks of the changes; none where there was none."""
    if seen.left_s is not None and (seen.code or not _woken(seen)):
        yield from _left(line, seen)
        return
    if not seen.changes:
        return
    first, last = seen.changes[0], seen.changes[-1]
    yield _nudge(line, seen, first, used)
    woke = _wakes(line, seen, last, used)
    if line.spec.duty > 0.0:
        yield (follows := _follows(line, seen, first, used))
        if follows.status == "fail" and woke.status == "pass":
            woke = line("duty.wakes", "skip", "it does not hold a duty of 0, so work after it shows nothing")
    yield woke
    if line.spec.duty > 0.0:
        yield _switches(line, seen, last, used, woke)


def _switches(line: Lines, seen: DutySeen, change: Change, used: list[DutyReport], woke: Check) -> Check:
    if lower_duty(line.spec.duty) is None:
        why = f"a duty of {line.spec.duty:g} leaves no room for a clearly lower one. List a duty spec of 0.2 or more"
        return line("duty.switches", "skip", why)
    if seen.left_s is not None:
        return line("duty.switches", "skip", _finished(seen), ENDED_EARLY)
    return judge_switch(line, seen, change, used, woke)


def _rules(duty: float) -> list[str]:
    """Rules that the changes after a duty are judged by, in their order."""
    if duty == 0.0:
        return ["duty.nudge", "duty.wakes"]
    more = [] if lower_duty(duty) is None else ["duty.switches"]
    return ["duty.nudge", "duty.follows", "duty.wakes", *more]


def _woken(seen: DutySeen) -> bool:
    return bool(seen.changes) and seen.changes[-1].woke_s is not None


def _finished(seen: DutySeen) -> str:
    return f"the task finished {seen.left_s:.1f} s after it was measured. Give it more to do"


def _left(line: Lines, seen: DutySeen) -> Iterator[Check]:
    """The task ended between the window and the stop."""
    wanted = _rules(line.spec.duty)
    if not seen.code:
        yield from (line(rule, "skip", _finished(seen), ENDED_EARLY) for rule in wanted)
        return
    code = f"signal {-seen.code}" if seen.code < 0 else f"exit {seen.code}"
    words = own_words(seen.failure, seen.stderr)
    broken = "duty.wakes" if len(seen.changes) > 1 or line.spec.duty == 0.0 else "duty.follows"
    if broken == "duty.wakes" and _woken(seen):
        broken = wanted[-1]
    told = f"it ended with {code} {seen.left_s:.1f} s after it was measured"
    for rule in wanted:
        if rule == broken:
            yield line(rule, "fail", f"must go on when its duty changes; {told}{words}")
        else:
            yield line(rule, "unknown", told)


# ---- only after a nudge -------------------------------------------------------------------------------------


def _nudge(line: Lines, seen: DutySeen, change: Change, used: list[DutyReport]) -> Check:
    """A duty that stood in the file and was not nudged must not have been taken."""
    rule = "duty.nudge"
    stood = f"duty {change.duty:g} stood in control.json for {change.nudging_wall - change.written_wall:.1f} s unasked"
    must = "control.json must be read again after a nudge alone, never on a timer"
    gained_s = change.unasked_s.get(_device(used)) if used else max(change.unasked_s.values(), default=None)
    if line.spec.duty == 0.0 and gained_s is not None and gained_s >= WORK_S:
        return line(rule, "fail", f"{must}; {stood}, and {gained_s:.3f} s of work were done before the nudge")
    for report in seen.reports:
        if took_early(report, change):
            before = change.nudging_wall - began(report)
            return line(rule, "fail", f"{must}; {stood}, and a report at it begins {before:.2f} s before the nudge")
    if any(names(report, change.duty) and report.window_s is not None for report in seen.reports):
        return line(rule, "pass", f"{stood}, and its report begins after the nudge")
    worked = gained_s is not None and (line.spec.duty == 0.0 or gained_s >= STILL * line.spec.duty * LOOKED_S - SLACK)
    if worked:
        return line(rule, "pass", f"{stood}, and the runner went on as before")
    return line(rule, "unknown", f"{stood}, and neither a report nor the measure tells when it was taken")


# ---- downwards -----------------------------------------------------------------------------------------------


def _follows(line: Lines, seen: DutySeen, change: Change, used: list[DutyReport]) -> Check:
    rule = "duty.follows"
    for report in seen.reports:
        after = report.window_s is not None and began(report) >= change.nudging_wall - BEGAN_SLACK_S
        if after and names(report, 0.0) and report.share > TOLERANCE + SLACK:
            told = f"reported {report.share:.3f} at duty 0; at most {limit(0.0):g} is allowed"
            return line(rule, "fail", told)
    blind = next((one for one in measured(seen, used) if one.unknown is not None), None)
    if blind is not None or not used:
        why = "there is no report that says where the units run" if blind is None else str(blind.unknown)
        found = judge_share(line, rule, _at(seen, change), [], 0.0)
        return found if found.status == "fail" else line(rule, "unknown", why)
    found = judge_share(line, rule, _at(seen, change), [replace(report, share=0.0) for report in used], 0.0)
    return _spilled(line, found, change) if found.status == "fail" else found


def _spilled(line: Lines, found: Check, change: Change) -> Check:
    """A failure, unless the unit in flight may explain it: what it waited in the settling second it still had to do."""
    waits = (change.cpu.waits or ()) if change.cpu is not None else ()
    waited_s = sum(
        wait.wait_s for wait in waits if change.cpu is not None and change.nudged < wait.t <= change.cpu.start
    )
    evidence = dict(found.evidence or {})
    sure = evidence.get("sure")
    if not isinstance(sure, float) or sure - waited_s / HELD_S > TOLERANCE + SLACK:
        return found
    why = f"the unit in flight waited {waited_s:.2f} s for a processor before"
    return line(found.rule, "unknown", f"{found.detail}, but {why}", evidence | BUSY)


def _at(seen: DutySeen, change: Change) -> DutySeen:
    """The evidence with the measure of a change in place of the window's."""
    return replace(seen, cpu=change.cpu, gpu=change.gpu)


# ---- upwards -------------------------------------------------------------------------------------------------


def _wakes(line: Lines, seen: DutySeen, change: Change, used: list[DutyReport]) -> Check:
    rule = "duty.wakes"
    after = f"of the nudge to duty {change.duty:g}"
    if change.woke_s is not None:
        return line(rule, "pass", f"worked within {change.woke_s:.2f} s {after}; {WAKE_S:g} s are allowed")
    if not _device_seen(change, used):
        return line(rule, "unknown", f"what the {_device(used)} did could not be read")
    rest_s = _longest_rest_s(seen, used)
    longer = _idle_part(change.duty) / _idle_part(line.spec.duty) if 0.0 < line.spec.duty < 1.0 else 1.0
    if rest_s * max(longer, 1.0) > WAKE_S:
        why = f"it rested for {rest_s:.2f} s in the window; so long an idle, at duty {change.duty:g}, outlasts the kit"
        return line(rule, "skip", why)
    detail = f"a new duty must end a wait at duty 0; found no work within {change.looked_s:.2f} s {after}"
    waited_s, before_s = _waited_s(change), _waited_before_s(change)
    evidence: dict[str, object] = {"looked_s": round(change.looked_s, 3), "waited_s": round(waited_s, 3)}
    owed_s = rest_s * max(longer, 1.0) + before_s * _idle_part(change.duty)
    if before_s > WORK_S and owed_s > _since_work_s(change) + change.looked_s - LATE_S:
        why = f"its last unit waited up to {before_s:.2f} s for a processor, and owes an idle for that too"
        return line(rule, "unknown", f"{detail}, but {why}", evidence | BUSY)
    # A unit that waits owes the idle of its waiting too: at a small duty a little of it keeps the next unit away.
    if waited_s > min(MORE_S, change.duty * change.looked_s / 2):
        why = f"the runner waited {waited_s:.2f} s for a processor"
        return line(rule, "unknown", f"{detail}, but {why}", evidence | BUSY)
    return line(rule, "fail", detail, evidence)


def _idle_part(duty: float) -> float:
    """How long an idle is owed for each second of work."""
    return (1.0 - duty) / duty


def _longest_rest_s(seen: DutySeen, used: list[DutyReport]) -> float:
    """The longest time without work in the window: an idle of the spec's own duty."""
    found = seen.cpu if _device(used) == "cpu" else seen.gpu
    if found is None:
        return 0.0
    busy = [tick for tick in found.ticks if (tick.gain_s or 0.0) >= WORKED_S and found.start < tick.t <= found.end]
    ends = [found.start, *(tick.t for tick in busy)]
    starts = [*(tick.t - tick.dt_s for tick in busy), found.end]
    return max(start - end for start, end in zip(starts, ends, strict=True))


def _device(used: list[DutyReport]) -> str:
    return "cpu" if all(report.device == "cpu" for report in used) else "gpu"


def _device_seen(change: Change, used: list[DutyReport]) -> bool:
    return _device(used) in change.unasked_s


def _waited_s(change: Change) -> float:
    """How long the runner waited for a processor while it was looked at."""
    waits = None if change.cpu is None else change.cpu.waits
    return sum(wait.wait_s for wait in waits or () if wait.t > change.nudged)


def _waited_before_s(change: Change) -> float:
    """How long its last unit before the nudge may have waited for a processor."""
    last = _last_work(change)
    waits = None if change.cpu is None or last is None else change.cpu.waits
    return sum(wait.wait_s for wait in waits or () if last is not None and last - UNIT_S < wait.t - wait.dt_s <= last)


def _since_work_s(change: Change) -> float:
    """How long before the nudge it last worked."""
    last = _last_work(change)
    return float("inf") if last is None else change.nudged - last


def _last_work(change: Change) -> float | None:
    ticks = () if change.cpu is None else change.cpu.ticks
    return max((tick.t for tick in ticks if tick.t <= change.nudged and tick.gain_s >= WORKED_S), default=None)
