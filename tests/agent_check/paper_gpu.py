"""A GPU on paper: first come, first served, each unit to its end, in virtual time; frames, and governed units beside.

A program hands in frames at a fixed rate. Workers hand in units, one at a time, each when the real governor's
arithmetic says so. Nothing here sleeps, and a day takes seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from oarbank_sdk.duty import _Pace

FRAME_S = 0.008
FRAMES_PER_S = 60.0


@dataclass
class Worker:
    """Units of about one length, under a governor of its own."""

    unit_s: float
    charged: Literal["wall", "device"] = "device"
    """What a unit is charged with: `device` is a runner that calls `unit.busy()`."""
    duty: float | None = None
    paused: bool = False
    uneven: float = 0.1
    """Units are so much shorter or longer, at random."""
    ready: float = 0.0
    pace: _Pace = field(default_factory=_Pace)
    units: list[tuple[float, float, float]] = field(default_factory=list)
    """(handed in, begun, ended) of each unit, in order."""

    def set(self, duty: float | None) -> None:
        self.duty = duty
        self.pace.forget()

    def next(self, now: float) -> float:
        """When it hands in its next unit; inf: not before something changes."""
        return math.inf if self.paused else max(self.ready, self.pace.due(self.duty), now)

    def held(self, since: float, until: float) -> float:
        """Its share of the device's time."""
        return self._share(since, until, 1)

    def held_by_wall(self, since: float, until: float) -> float:
        """The share of time during which a unit of it was open, waiting or running."""
        return self._share(since, until, 0)

    def _share(self, since: float, until: float, begin: int) -> float:
        busy = 0.0
        for unit in reversed(self.units):
            if unit[2] <= since:
                break
            busy += max(0.0, min(unit[2], until) - max(unit[begin], since))
        return busy / (until - since)


@dataclass
class PaperGpu:
    """The device, with its workers and perhaps a program."""

    workers: Sequence[Worker]
    rng: random.Random
    now: float = 0.0
    frame: float = math.inf
    """When the next frame is handed in; inf: no program."""
    free: float = 0.0
    frames: list[tuple[float, float]] = field(default_factory=list)
    """(handed in, seconds until the device had drawn it) of each frame."""

    def run(self, until: float) -> None:
        while True:
            at, worker = self.frame, None
            for one in self.workers:
                handed_in = one.next(self.now)
                if handed_in < at:
                    at, worker = handed_in, one
            if at >= until:
                self.now = until
                return
            self.now = at
            begun = max(at, self.free)
            if worker is None:
                self.free = begun + FRAME_S
                self.frames.append((at, self.free - at))
                self.frame = at + 1 / FRAMES_PER_S
                continue
            length = worker.unit_s * (1 + worker.uneven * self.rng.uniform(-1, 1))
            self.free = begun + length
            worker.pace.began(at, worker.duty)
            worker.pace.busy = length if worker.charged == "device" else self.free - at
            worker.ready = self.free
            worker.units.append((at, begun, self.free))

    def slowed(self, since: float) -> float:
        """How much longer the frames since then took than alone, as a part of that: 0 alone."""
        took = []
        for at, length in reversed(self.frames):
            if at < since:
                break
            took.append(length)
        return sum(took) / len(took) / FRAME_S - 1 if took else 0.0

    def percentile(self, part: float, since: float) -> float:
        took = sorted(length for at, length in self.frames if at >= since)
        return took[min(len(took) - 1, int(part * len(took)))]


@dataclass
class Cycle:
    """A job that runs units of one length at one share, seen from outside without simulating each unit."""

    unit_s: float
    share: float
    phase: float
    """Where in a cycle it is at time 0, 0 to 1."""

    def busy(self, t: float) -> float:
        """Its busy seconds up to `t`, from some moment on."""
        length = self.unit_s / self.share
        whole, rest = divmod(t + self.phase * length, length)
        return whole * self.unit_s + min(rest, self.unit_s)
