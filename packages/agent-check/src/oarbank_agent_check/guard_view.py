"""How a guarded machine stands, for a person and for a program: a table, lines, and one JSON object.

Decides words, digits and which change is worth a line. What is not known is a dash, never a zero. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oarbank_agent_check.job_view import NOTHING, JobView, clock


@dataclass(frozen=True, slots=True)
class ProgramView:
    """How a program stands, for a person."""

    name: str
    there: bool
    active: bool
    share: float | None  # of the GPU's time, newest sample
    rate: float | None  # counts a second now
    baseline: float | None  # the same while nothing of ours ran
    pressure: float | None
    learning: bool
    fault: str | None  # why its progress says nothing


@dataclass(frozen=True, slots=True)
class LaneView:
    """How a lane stands, for a person."""

    name: str
    left: int  # jobs that are not done, the one that runs included
    waits: str | None  # why it waits; None: it does not
    job: JobView | None
    outcome: str | None  # what came of the last one that ended


@dataclass(frozen=True, slots=True)
class GuardView:
    """One moment of the machine."""

    t: float  # Unix seconds
    running_s: float
    rule: str
    programs: tuple[ProgramView, ...]
    lanes: tuple[LaneView, ...]

    @property
    def change(self) -> tuple[object, ...]:
        """What makes a line worth printing when it is another than before."""
        return (
            *((one.active, one.learning, one.fault is None) for one in self.programs),
            *((one.left, one.waits, None if one.job is None else one.job.change) for one in self.lanes),
        )


def program_state(view: ProgramView) -> str:
    """Say in a few words how a program stands."""
    if not view.there:
        return "not running"
    if not view.active:
        return "quiet"
    if view.learning:
        return "learning its speed" if view.fault is None else "its speed is unknown"
    return "uses the GPU"


def lane_state(view: LaneView) -> str:
    """Say in a few words how a lane stands."""
    if view.job is None:
        return "ended" if not view.left else "waits"
    if view.job.stopping:
        return "stopping"
    return "paused" if view.job.paused else "runs"


def table(view: GuardView) -> str:
    """Return the table."""
    lines = []
    if view.programs:
        lines.append(f"{'program':<16} {'state':<20} {'GPU':>6} {'speed':>9} {'alone':>9} {'pressure':>8}")
        lines += [_program_row(one) for one in view.programs]
    lines.append(f"{'job':<16} {'state':<9} {'asked':>6} {'held':>7} {'strikes':>7} {'left':>4}  phase")
    lines += [_lane_row(one) for one in view.lanes]
    return "\n".join(lines)


def lines(view: GuardView) -> list[str]:
    """Return the same as lines that can be read one by one."""
    at = clock(view.running_s)
    found = [
        f"{at}  {one.name}: {program_state(one)}, GPU {_share(one.share)}, pressure {_two(one.pressure)}"
        + (f", {one.fault}" if one.fault else "")
        for one in view.programs
    ]
    for one in view.lanes:
        job = one.job
        if job is None:
            more = one.waits or (None if one.left else one.outcome)
            found.append(f"{at}  {one.name}: {lane_state(one)}{f', {more}' if more else ''}")
        else:
            measured = "unknown" if job.unread else _share(job.measured)
            found.append(
                f"{at}  {one.name}: {lane_state(one)}, asked {_share(job.asked)}, held {measured},"
                f" strikes {job.strikes}, phase {job.phase or NOTHING}"
            )
    return found


def document(view: GuardView) -> dict[str, Any]:
    """Return the moment as plain JSON values; unknown is null."""
    return {
        "kind": "state",
        "t": view.t,
        "gpu_jobs": view.rule,
        "programs": [
            {
                "name": one.name,
                "state": program_state(one),
                "active": one.active,
                "share": one.share,
                "rate": one.rate,
                "baseline": one.baseline,
                "pressure": one.pressure,
                "fault": one.fault,
            }
            for one in view.programs
        ],
        "jobs": [_lane_document(one) for one in view.lanes],
    }


def _lane_document(view: LaneView) -> dict[str, Any]:
    job = view.job
    return {
        "name": view.name,
        "state": lane_state(view),
        "left": view.left,
        "waits": view.waits,
        "asked": None if job is None else job.asked,
        "held": None if job is None or job.unread else job.measured,
        "reported": None if job is None else job.reported,
        "strikes": 0 if job is None else job.strikes,
        "phase": None if job is None else job.phase or None,
        "outcome": view.outcome,
    }


def _program_row(view: ProgramView) -> str:
    speed, alone = _speed(view.rate), _speed(view.baseline)
    row = f"{view.name:<16} {program_state(view):<20} {_share(view.share):>6} {speed:>9} {alone:>9}"
    return f"{row} {_two(view.pressure):>8}" + (f"  {view.fault}" if view.fault else "")


def _lane_row(view: LaneView) -> str:
    job = view.job
    head = f"{view.name:<16} {lane_state(view):<9}"
    if job is None:
        more = view.waits or view.outcome or ""
        return f"{head} {NOTHING:>6} {NOTHING:>7} {NOTHING:>7} {view.left:>4}  {more}"
    held = "unknown" if job.unread else _share(job.measured)
    return f"{head} {_share(job.asked):>6} {held:>7} {job.strikes:>7} {view.left:>4}  {job.phase or NOTHING}"


def _share(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.3f}"


def _two(number: float | None) -> str:
    return NOTHING if number is None else f"{number:.2f}"


def _speed(rate: float | None) -> str:
    return NOTHING if rate is None else f"{rate:.4g}/s"
