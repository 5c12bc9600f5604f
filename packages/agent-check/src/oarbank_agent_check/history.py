"""What happened over time, for a person: duties asked and held, pressures, and every decision with its reason.

Fed with the lines of an `agent-journal-1`, live or from a file, and with nothing else. Memory is bounded: old
points are thinned, old decisions dropped. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_POINTS = 1200
MOST_DECISIONS = 300
GAP_S = 30.0
"""Longer between two points than this, and nothing is drawn between them."""

_WITHOUT_LEVEL = {
    "learning": "its own speed is being learnt",
    "unknown": "its own speed cannot be learnt, its counter says nothing",
}
_ATTEMPT = re.compile(r"-[0-9a-f]{6}$")
_PART = re.compile(r"\.[0-9]+$")

Point = tuple[float, float | None]


@dataclass(slots=True)
class JobHistory:
    """One lane's: `asked` are orders (None: no limit), `held` measured shares (None: unreadable), `runs` its jobs."""

    asked: list[Point] = field(default_factory=list)
    held: list[Point] = field(default_factory=list)
    pauses: list[tuple[float, float | None]] = field(default_factory=list)  # from, to
    runs: list[tuple[float, float | None]] = field(default_factory=list)


@dataclass(slots=True)
class ProgramHistory:
    """One program's: pressures (None: stale), and when it used the GPU."""

    pressure: list[Point] = field(default_factory=list)
    active: list[tuple[float, float | None]] = field(default_factory=list)
    level: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that was decided, or that changed what is decided."""

    t: float
    who: str
    what: str
    why: str


def lane_of(attempt: str) -> str:
    """Return the lane's name of an attempt's."""
    return _PART.sub("", _ATTEMPT.sub("", attempt))


@dataclass(slots=True)
class History:
    """The whole of it."""

    jobs: dict[str, JobHistory] = field(default_factory=dict)
    programs: dict[str, ProgramHistory] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    first: float | None = None
    """Where time begins. A line may still tell of a moment before: what fell due while nobody was there."""
    last: float | None = None

    def feed(self, line: Mapping[str, Any]) -> None:
        """Hear one line; what it does not know, or cannot use, changes nothing."""
        t, kind = line.get("t"), line.get("kind")
        if not isinstance(t, (int, float)) or not isinstance(kind, str):
            return
        self.first = t if self.first is None else self.first
        self.last = t if self.last is None else max(self.last, t)
        program = line.get("program")
        if kind in ("protected", "pressure"):
            self._program(kind, t, program if isinstance(program, str) else "the program", line)
        elif kind in ("ban", "unban"):
            what = "banned for an hour" if kind == "ban" else "no longer banned"
            self._decide(t, str(line.get("module")), what, str(line.get("reason") or ""))
        elif isinstance(line.get("job"), str):
            self._job(kind, t, _ATTEMPT.sub("", line["job"]), line)

    def _program(self, kind: str, t: float, name: str, line: Mapping[str, Any]) -> None:
        of = self.programs.setdefault(name, ProgramHistory())
        if kind == "pressure":
            _add(of.pressure, (t, line.get("value")))
            return
        active = line.get("active") is True
        level = line.get("level")
        levels = line.get("levels") or {}
        if not active:
            if _close(of.active, t):
                self._decide(t, name, "no longer uses the GPU", "")
            return
        if not of.active or of.active[-1][1] is not None:
            of.active.append((t, None))
            self._decide(t, name, "uses the GPU", "")
        of.level = max([level or 0.0, *levels.values()]) if level is not None or levels else None
        if of.level is not None:
            self._decide(t, name, f"jobs may have {of.level:.3f} beside it", "its level")
        else:
            why = _WITHOUT_LEVEL.get(str(line.get("speed")), "it has no level")
            self._decide(t, name, "nothing that needs a duty may run beside it", why)

    def _job(self, kind: str, t: float, job: str, line: Mapping[str, Any]) -> None:
        of = self.jobs.setdefault(lane_of(job), JobHistory())
        reason = str(line.get("reason") or "")
        if kind == "sample":
            if line.get("baseline") is not True:
                _add(of.held, (t, line.get("share")))
        elif kind == "duty":
            duty = line.get("duty")
            _add(of.asked, (t, duty))
            self._decide(t, job, "no limit" if duty is None else f"duty {duty:.3f}", _cause(line))
        elif kind == "admit":
            of.runs.append((t, None))
            self._decide(t, job, "may run", _cause(line))
        elif kind == "hold":
            self._decide(t, job, "waits", reason)
        elif kind == "pause":
            _close(of.pauses, t)
            of.pauses.append((t, None))
            self._decide(t, job, "paused", reason)
        elif kind == "resume":
            _close(of.pauses, t)
            self._decide(t, job, "goes on", "")
        elif kind in ("stop", "release"):
            self._decide(t, job, "stopped" if kind == "stop" else "given back", reason)
        elif kind == "job_end":
            _close(of.pauses, t)
            if _close(of.runs, t):
                self._decide(t, job, "ended", "")

    def _decide(self, t: float, who: str, what: str, why: str) -> None:
        self.decisions.append(Decision(t, who, what, why))
        del self.decisions[:-MOST_DECISIONS]


def _cause(line: Mapping[str, Any]) -> str:
    """The newest input behind an order, in words."""
    causes = [one for one in line.get("because", []) if isinstance(one, dict)]
    rows = [one for one in causes if one.get("kind") == "pressure"]
    last = causes[-1] if causes else {}
    if rows and last.get("kind") in ("pressure", "protected"):
        value = rows[-1].get("value")
        name = rows[-1].get("program") or "the program"
        if value is None:
            return f"nobody can say how {name} does"
        slowed = "has not slowed to its target" if value < 1 else f"has slowed to {value:.1f} times its target"
        return f"{name} {slowed} (pressure {value:.2f})"
    kinds = {
        "protected": "a protected program uses the GPU" if last.get("active") else "the program no longer uses it",
        "job_end": "another job has ended",
        "job": "it, or another job, asked to run",
        "policy": "the owner's rule",
    }
    return kinds.get(str(last.get("kind")), "")


def _close(spans: list[tuple[float, float | None]], t: float) -> bool:
    """End the open span; False when none was."""
    if not spans or spans[-1][1] is not None:
        return False
    spans[-1] = (spans[-1][0], t)
    return True


def _add(points: list[Point], point: Point) -> None:
    points.append(point)
    if len(points) > MOST_POINTS:
        half = len(points) // 2
        points[:half] = points[:half:2]
