"""The agent's own clock: Unix seconds that never go back, also over a restart.

Inside a run it follows the monotonic clock, so a wall clock that is set moves nothing. Between two runs it adds what
the wall clock says, and nothing where that went back: a ban then lasts longer, never shorter. With a factor it runs
that many times faster, for trying out in a minute what takes an hour; what is measured stays a share of real time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClockMark:
    """Where the agent's clock stood, and what the wall clock (Unix seconds) said then."""

    t: float
    wall: float


class AgentClock:
    """Starts when it is made; `last` is the mark that the last run left, None before the first."""

    def __init__(self, factor: float = 1.0, last: ClockMark | None = None) -> None:
        self.factor = factor
        wall = time.time()
        mark = last if last is not None else ClockMark(wall, wall)
        self._start = mark.t + max(wall - mark.wall, 0.0) * factor
        self._began = time.monotonic()

    def now(self) -> float:
        """Give the agent's time, in seconds."""
        return self._start + (time.monotonic() - self._began) * self.factor

    def mark(self) -> ClockMark:
        """Give what the next run must know."""
        return ClockMark(self.now(), time.time())

    def wall(self, t: float) -> float:
        """Give the Unix seconds at which this clock will show `t`."""
        return time.time() + self.real(t - self.now())

    def real(self, seconds: float) -> float:
        """Say how long some agent's seconds last for a person."""
        return seconds / self.factor
