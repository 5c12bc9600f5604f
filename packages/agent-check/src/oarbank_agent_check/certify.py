"""Which level is certified: the verdict on each level, and which one is measured next.

Levels are tried from the lowest up and the first that does not pass ends the ascent, so all below a level that passes
have passed. Then the gap between the last that passed and the first that did not is halved until it is within the
resolution, or time is up. Wrongly passing a level that harms is what `error` bounds, for the whole sweep: half of it
goes to the ascent, whole for each level, since no ascent goes wrong unless the lowest harmful level passes; the other
half is split over the halvings. Wrongly calling a level harmful only costs sharing, so its error is larger and each
level's own. Pure: moments come in as seconds since the start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from oarbank_agent_check import windows
from oarbank_agent_check.bets import EFFECTS, Bets, interval, needed, scale_of
from oarbank_agent_check.windows import Pair

LEVELS = (0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
"""What is tried: steps of 1.5 at most, so two halvings make a gap of 1.11."""

ERROR = 0.005
"""One sweep in 200 at most certifies a level that harms more than the target."""

HARM_ERROR = 0.01
"""So often at most is a level wrongly called harmful."""

RESOLUTION = 0.1
"""The certified level is within this part of the first that does not pass."""

CLOSE = 0.05
"""A harm within this part of the target is called close: it would take forever to say on which side it lies."""

REFINEMENTS = 6
LEAST_LEVEL = 0.01
LEAST_PAIRS = 20
"""Pairs that a pass takes at least: harm that comes in one running window of ten is then missed one time in eight."""

MOST_VOID = 5
"""Pairs in a row that say nothing: then nothing will."""

NOISE_EACH = 32
"""The noise of many pairs hardly moves: it is taken anew after so many."""

HOPELESS_PAIRS = 16
HOPELESS = 4.0
"""A level is given up when that many pairs show that it needs this many times the time that is left."""

Verdict = Literal["pass", "harms", "close", "undecided", "void"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What an owner asks for; ValueError where it makes no sense."""

    target: float = 0.05  # harm that is still fine, a part of the progress, above 0 and below 1
    levels: tuple[float, ...] = LEVELS  # rising, above 0 to 1
    time_limit_s: float = 7200.0
    least_pairs: int = LEAST_PAIRS
    error: float = ERROR

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise ValueError(f"target: must be above 0 and below 1; found {self.target}")
        rising = all(a < b for a, b in pairwise(self.levels))
        if not self.levels or not rising or not (self.levels[0] >= LEAST_LEVEL and self.levels[-1] <= 1):
            raise ValueError(f"levels: must rise, from {LEAST_LEVEL} on up to 1; found {self.levels}")


@dataclass(slots=True)
class LevelTest:
    """One level: its pairs, and what they say."""

    level: float
    target: float
    error: float
    least_pairs: int = LEAST_PAIRS
    prior: float | None = None  # the noise as earlier levels told it
    pairs: list[Pair] = field(default_factory=list)
    slowdowns: list[float] = field(default_factory=list)  # of the pairs that count
    scales: list[float] = field(default_factory=list)  # at which the bets on each were made
    counted: list[Pair] = field(default_factory=list)
    voids: int = 0  # in a row
    verdict: Verdict = "undecided"
    why: str | None = None
    noise: float | None = field(init=False)
    """The standard deviation of a pair, as a part of the rate; None: too few pairs."""
    _target: Bets = field(init=False)
    _lower: Bets = field(init=False)
    _upper: Bets = field(init=False)

    def __post_init__(self) -> None:
        self.noise = self.prior
        at = [windows.slowdown_of(min(self.target * part, 0.999)) for part in (1, 1 - CLOSE, 1 + CLOSE)]
        self._target, self._lower, self._upper = map(Bets, at)

    @property
    def over(self) -> bool:
        """Whether the level needs no more pairs."""
        return self.verdict != "undecided" or self.why is not None

    def hear(self, pair: Pair) -> None:
        """Take a pair in, and judge."""
        self.pairs.append(pair)
        fault = windows.fault(pair)
        if fault is not None:
            self.voids += 1
            if self.voids >= MOST_VOID:
                self.verdict, self.why = "void", f"{self.voids} pairs of windows in a row say nothing: {fault}"
            return
        self.voids = 0
        # Any stake is fair that is fixed before the pair: while no noise is known, the target's own size is the guess.
        slowdown, scale = windows.slowdown(pair), self.noise or self._target.at
        self.slowdowns.append(slowdown)
        self.scales.append(scale)
        self.counted.append(pair)
        for bets in (self._target, self._lower, self._upper):
            bets.hear(slowdown, scale)
        self._judge()
        if len(self.slowdowns) < NOISE_EACH or len(self.slowdowns) % NOISE_EACH == 0:
            self.noise = scale_of(self.slowdowns, self.prior)

    def _judge(self) -> None:
        sure = needed(HARM_ERROR)
        below = self._target.below() >= needed(self.error) and windows.plain_harm(self.counted) < self.target
        if below and len(self.counted) >= self.least_pairs:
            self.verdict = "pass"
        elif self._target.above() >= sure:
            self.verdict = "harms"
        elif self._lower.above() >= sure and self._upper.below() >= sure:
            self.verdict = "close"

    def interval(self) -> tuple[float | None, float | None]:
        """Give the bounds of the harm: the lower errs with `HARM_ERROR`, the upper with the level's own error."""
        low, high = interval(self.slowdowns, self.scales, low_error=HARM_ERROR, high_error=self.error)
        return None if low is None else windows.harm_of(low), None if high is None else windows.harm_of(high)

    def harm(self) -> float | None:
        """Give 1 - progress running / progress paused, over the pairs that count."""
        return windows.plain_harm(self.counted) if self.counted else None

    def held(self) -> float | None:
        """Give the mean share that was held while the work ran."""
        shares = [pair.running.held for pair in self.counted if pair.running.held is not None]
        return sum(shares) / len(shares) if shares else None

    def pairs_needed(self) -> float | None:
        """Say about how many pairs it takes at this noise to pass a level that does no harm at all."""
        noise = self.noise
        if noise is None:
            return None
        wealth = needed(self.error) + needed(1 / len(EFFECTS))
        return max(2 * wealth * (noise / self._target.at) ** 2, self.least_pairs)


class Certifier:
    """The search: asked which level to measure next, told what was found."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.tests: list[LevelTest] = []
        self.passed: LevelTest | None = None  # the highest
        self.failed: LevelTest | None = None  # the lowest above it that did not pass
        self.why: str | None = None  # why it ended before the resolution was reached
        self.over = False
        self._refined = 0
        self._give_up_s = 0.0
        self._open(rules.levels[0], rules.error / 2, 0.0, rules.time_limit_s)

    @property
    def now(self) -> LevelTest:
        """The level that is measured, or was last."""
        return self.tests[-1]

    @property
    def level(self) -> float | None:
        """What is certified so far."""
        return None if self.passed is None else self.passed.level

    def next(self, elapsed_s: float, pair_s: float) -> float | None:
        """Give the level of the next pair, which takes about `pair_s`; None: it is over."""
        while not self.over:
            if not self.now.over:
                if elapsed_s + pair_s <= self._give_up_s:
                    return self.now.level
                self._out_of_time(self.now, pair_s)
            self._settle(elapsed_s)
        return None

    def hear(self, pair: Pair, elapsed_s: float, pair_s: float) -> None:
        """Take a pair in."""
        test = self.now
        test.hear(pair)
        if not test.over and len(test.counted) >= HOPELESS_PAIRS:
            more = test.pairs_needed()
            if more is not None and more * pair_s > HOPELESS * (self._give_up_s - elapsed_s):
                self._out_of_time(test, pair_s)

    def end(self, why: str) -> None:
        """Measure no more."""
        self.over, self.why = True, why

    def _open(self, level: float, error: float, elapsed_s: float, give_up_s: float) -> None:
        prior = self.tests[-1].noise if self.tests else None
        self.tests.append(LevelTest(level, self.rules.target, error, self.rules.least_pairs, prior))
        self._give_up_s = give_up_s

    def _out_of_time(self, test: LevelTest, pair_s: float) -> None:
        taken, noise, more, harm = len(test.counted), test.noise, test.pairs_needed(), test.harm()
        if noise is not None and more is not None and more > max(taken, test.least_pairs):
            test.why = (
                f"the progress is too uneven: two windows of it differ by {noise:.1%} (standard deviation) whatever the"
                f" work does, and at that even a level without harm takes about {more:.0f} pairs of windows,"
                f" {duration(more * pair_s)}; there were {taken}"
            )
        elif harm is not None and taken >= test.least_pairs:
            test.why = f"{taken} pairs of windows were not enough to tell its harm, {harm:.2%} as seen, from the target"
        else:
            test.why = f"time was up after {taken} pairs of windows"

    def _settle(self, elapsed_s: float) -> None:
        """A level is decided, or given up: say what comes next."""
        test = self.now
        if test.verdict == "pass":
            self.passed = test
        elif test.verdict == "void":
            self.end(test.why or "nothing was measured")
            return
        else:
            self.failed = test
        if self.failed is None:
            higher = [level for level in self.rules.levels if level > test.level]
            if not higher:
                self.over = True  # all passed
            else:
                self._open(higher[0], self.rules.error / 2, elapsed_s, self._share(elapsed_s))
            return
        if test.verdict == "undecided" and self.passed is None:
            self.end(test.why or "time was up")  # what is noise here is noise at every level
            return
        self._refine(elapsed_s)

    def _refine(self, elapsed_s: float) -> None:
        assert self.failed is not None
        below, above = self.level or 0.0, self.failed.level
        wanted = 1 - (RESOLUTION if self.failed.verdict == "harms" else CLOSE)
        candidate = round((below * above) ** 0.5 if below else above / 2, 3)
        if below >= wanted * above or not below < candidate < above or candidate < LEAST_LEVEL:
            self.over = True
            if self.failed.verdict == "undecided":
                first = next(test for test in self.tests if test.verdict == "undecided")
                self.why = f"level {first.level:.3f}: {first.why}"
        elif self._refined == REFINEMENTS:
            self.end(f"{REFINEMENTS} halvings were not enough")
        else:
            self._refined += 1
            self._open(candidate, self.rules.error / 2 / REFINEMENTS, elapsed_s, self._share(elapsed_s))

    def _share(self, elapsed_s: float) -> float:
        """A level above the first may take half of the time that is left."""
        return elapsed_s + (self.rules.time_limit_s - elapsed_s) / 2


def duration(seconds: float) -> str:
    """Say a length of time to a person, roughly."""
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{seconds:.0f} s"
