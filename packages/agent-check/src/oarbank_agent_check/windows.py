"""A protected program's progress over a stretch of time, with the work beside it paused or running, and pairs of them.

Decides what a pair says about the slowdown, and when it says nothing: a counter that goes back or stands still is
stale and never fine, and a level that was not held proves nothing. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

LEAST_HELD = 0.35
"""A running window must hold at least this part of its level. Well below 1: beside a busy device the wait counts as
held by the governor, and units of 1 ms behind frames of 8 ms truly hold 0.37 of what is asked."""

MOST_PAUSED = 0.25
"""A paused window may hold at most this part of the level, or `LITTLE`: a program that waits is not quite idle."""

LITTLE = 0.01

LARGEST = math.log(1000.0)
"""The slowdown of a program that stood still while the work ran: it counts, and as a finite number."""


@dataclass(frozen=True, slots=True)
class Window:
    """One stretch; what could not be told is None, and `fault` says why the window is of no use."""

    kind: Literal["paused", "running"]
    t: float  # Unix seconds, its begin
    seconds: float  # above 0
    progress: float | None  # what the counter gained
    held: float | None  # share of the device that the work took
    fault: str | None = None

    @property
    def rate(self) -> float:
        """Progress a second; 0 where there is none."""
        return (self.progress or 0.0) / self.seconds


@dataclass(frozen=True, slots=True)
class Pair:
    """Two windows, in the order in which they were taken."""

    level: float
    first: Window
    second: Window

    @property
    def windows(self) -> tuple[Window, Window]:
        """Both, in time."""
        return self.first, self.second

    @property
    def paused(self) -> Window:
        """The one with the work paused."""
        return self.first if self.first.kind == "paused" else self.second

    @property
    def running(self) -> Window:
        """The one with the work running."""
        return self.second if self.first.kind == "paused" else self.first


def fault(pair: Pair) -> str | None:
    """Say why a pair says nothing; None: it counts."""
    for window in pair.windows:
        if window.fault is not None:
            return window.fault
    paused, running = pair.paused, pair.running
    for window in pair.windows:
        if window.progress is None or window.progress < 0:
            return "the counter could not be read"
        if window.held is None:
            return "what the work held could not be measured"
    if not paused.progress:
        return "the counter stood still while the work was paused"
    if (paused.held or 0.0) > max(MOST_PAUSED * pair.level, LITTLE):
        return f"the work went on while it was paused: it held {paused.held:.3f}"
    if (running.held or 0.0) < LEAST_HELD * pair.level:
        return f"the level was not held: the work took {running.held:.3f} of {pair.level:.3f}"
    return None


def slowdown(pair: Pair) -> float:
    """Give log(rate with the work paused / rate with it running), `LARGEST` at most; for a pair that counts."""
    paused, running = pair.paused.rate, pair.running.rate
    if running <= 0:
        return LARGEST
    return max(-LARGEST, min(math.log(paused) - math.log(running), LARGEST))


def harm_of(slowdown: float) -> float:
    """Give the part of its progress that a program loses: 1 - running / paused."""
    return -math.expm1(-slowdown)


def slowdown_of(harm: float) -> float:
    """Give the slowdown of a harm below 1."""
    return -math.log1p(-harm)


def plain_harm(pairs: Sequence[Pair]) -> float:
    """Give 1 - all progress a second with the work running / the same with it paused, over pairs that count."""
    return 1 - _rate(pair.running for pair in pairs) / _rate(pair.paused for pair in pairs)


def _rate(windows: Iterable[Window]) -> float:
    listed = list(windows)
    return sum(window.progress or 0.0 for window in listed) / sum(window.seconds for window in listed)
