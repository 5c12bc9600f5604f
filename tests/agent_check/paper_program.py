"""A protected program on paper: its progress in virtual time, slowed by a known harm, under noise of many kinds.

`sweep` runs the whole search against it. The noise never looks at whether the work runs, but for `bursts_of_harm`,
where the harm itself comes in bursts: one window in ten takes all of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from oarbank_agent_check.certify import Certifier, Rules
from oarbank_agent_check.windows import Pair, Window

Noise = Iterator[float]
"""Factors of the rate, one a window."""

RATE = 60.0
"""Steps a second."""


def harm_of_a_trainer(level: float) -> float:
    """First come, first served beside a program that always wants the device: the harm is nearly the share."""
    return 0.4 * level


def harm_of_a_game(level: float) -> float:
    """Nothing until the frames no longer fit, and then quickly more."""
    return 0.01 * level + 0.9 * max(0.0, level - 0.23) ** 1.2


CURVES: dict[str, Callable[[float], float]] = {"trainer": harm_of_a_trainer, "game": harm_of_a_game}


def gaussian(rng: random.Random, sd: float = 0.005) -> Noise:
    while True:
        yield max(0.0, 1 + rng.gauss(0, sd))


def hitches(rng: random.Random) -> Noise:
    """One window in ten loses up to a twentieth, whatever the work does."""
    for factor in gaussian(rng, 0.003):
        yield factor * (1 - rng.uniform(0, 0.05) if rng.random() < 0.1 else 1)


def heavy_tails(rng: random.Random) -> Noise:
    """Student's t with 2 degrees of freedom: no variance at all."""
    while True:
        yield math.exp(0.003 * rng.gauss(0, 1) / math.sqrt(rng.expovariate(1)))


def drifting(rng: random.Random) -> Noise:
    """A machine that warms up, and a day that goes by: a fifth less in an hour, and waves of a tenth."""
    for i, factor in enumerate(gaussian(rng, 0.004)):
        yield factor * (0.8 + 0.2 * math.exp(-i / 300)) * (1 + 0.1 * math.sin(i / 40))


def autocorrelated(rng: random.Random) -> Noise:
    """Each window is much like the last one."""
    state = 0.0
    while True:
        state = 0.8 * state + rng.gauss(0, 0.005)
        yield math.exp(state)


NOISES: dict[str, Callable[[random.Random], Noise]] = {
    "gaussian": gaussian,
    "hitches": hitches,
    "heavy tails": heavy_tails,
    "drifting": drifting,
    "autocorrelated": autocorrelated,
}


@dataclass
class PaperProgram:
    """One program; `harm` is the true one at a level, `whole` counts whole steps only."""

    harm: Callable[[float], float]
    noise: Noise
    rng: random.Random
    window_s: float = 10.0
    settle_s: float = 2.0
    bursts_of_harm: bool = False
    held: float = 1.0  # the part of its level that the work takes
    t: float = 1000.0
    windows: int = 0
    fault: Callable[[int], str | None] = field(default=lambda number: None)

    @property
    def pair_s(self) -> float:
        return 2 * (self.window_s + self.settle_s)

    def pair(self, level: float) -> Pair:
        """Take two windows, in an order that a coin chooses."""
        first = self.rng.random() < 0.5
        return Pair(level, self._window(level, paused=first), self._window(level, paused=not first))

    def _window(self, level: float, *, paused: bool) -> Window:
        self.t += self.settle_s
        began, self.windows = self.t, self.windows + 1
        harm = 0.0 if paused else self.harm(level)
        if harm and self.bursts_of_harm:
            harm = min(1.0, 10 * harm) if self.rng.random() < 0.1 else 0.0
        steps = math.floor(RATE * self.window_s * next(self.noise) * (1 - harm) + self.rng.random())
        self.t += self.window_s
        held = 0.0 if paused else self.held * level
        fault = self.fault(self.windows)
        return Window("paused" if paused else "running", began, self.window_s, steps, held, fault)


def sweep(program: PaperProgram, rules: Rules) -> Certifier:
    """Search to the end, in no time."""
    certifier, began = Certifier(rules), program.t
    while (level := certifier.next(program.t - began, program.pair_s)) is not None:
        pair = program.pair(level)
        certifier.hear(pair, program.t - began, program.pair_s)
    return certifier


def true_level(harm: Callable[[float], float], target: float) -> float:
    """Find the highest level, up to 1, that harms no more than the target."""
    low, high = 0.0, 1.0
    if harm(1.0) <= target:
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if harm(middle) <= target else (low, middle)
    return low


def program(curve: str, noise: str, seed: int, **changes: object) -> PaperProgram:
    """Make the program of a curve and a noise."""
    rng = random.Random(f"{curve} {noise} {seed}")
    return PaperProgram(CURVES[curve], NOISES[noise](rng), rng, **changes)  # type: ignore[arg-type]
