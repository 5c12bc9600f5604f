"""Whether a slowdown lies below or above a value: a test by betting that may be looked at after every pair.

A pair is a window with the work paused and one with it running; a coin chose which came first. If the true slowdown, a
logarithm, is `at`, that coin makes a pair's difference from `at` as likely too large as too small, whatever the noise
is like: heavy tails, bursts, drift, one window like the last. So whoever bets on its sign, at stakes fixed before the
pair, plays a fair game, and the wealth ever passes 1/error with at most that probability (Ville's inequality, 1939).
The stake is `tanh(effect * z)`, the best for normal noise (the likelihood ratio of z against -z); since nobody knows
the effect beforehand, the bettor splits its wealth evenly over several. What is assumed is one slowdown that holds all
the time. Where it varies, the log of the wealth is still concave in the difference: rare windows of great harm cost
more than many good ones win, and a mean slowdown above `at` loses in the long run; harm too rare to be seen in the
pairs taken stays unseen. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

EFFECTS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Distances from `at`, in standard deviations of a pair, for which the wealth is split."""

MAD_TO_DEVIATION = 1.4826
"""The median absolute deviation of a normal distribution is so much smaller than its standard deviation."""

LEAST_SCALE = 1e-4
"""The least noise that is believed, as a part of the rate: a capped program shows none at all."""

OWN_PAIRS = 5
"""Pairs after which the scale of the bets is this level's own."""


class Bets:
    """Two bettors on one question: is the slowdown below `at` (a logarithm), or above it."""

    def __init__(self, at: float) -> None:
        self.at = at
        self._below = [0.0] * len(EFFECTS)  # logs of wealth
        self._above = [0.0] * len(EFFECTS)

    def hear(self, slowdown: float, scale: float) -> None:
        """Settle the bets on one pair; `scale` must have been known before it."""
        z = (self.at - slowdown) / scale
        for i, effect in enumerate(EFFECTS):
            self._below[i] += _won(2 * effect * z)
            self._above[i] += _won(-2 * effect * z)

    def below(self) -> float:
        """Give the log of the wealth of who says that the slowdown is below."""
        return _mean(self._below)

    def above(self) -> float:
        """Give the log of the wealth of who says that it is above."""
        return _mean(self._above)


def needed(error: float) -> float:
    """Give the log of the wealth that a bettor must reach."""
    return -math.log(error)


def scale_of(slowdowns: Sequence[float], prior: float | None) -> float | None:
    """Give the noise of a pair, as a standard deviation, as earlier ones tell it; `prior` while there are few."""
    if len(slowdowns) < OWN_PAIRS:
        return prior
    centre = median(slowdowns)
    return max(MAD_TO_DEVIATION * median(abs(one - centre) for one in slowdowns), LEAST_SCALE)


def interval(
    slowdowns: Sequence[float], scales: Sequence[float], *, low_error: float, high_error: float
) -> tuple[float | None, float | None]:
    """Give the slowdowns that nobody got rich against: (low, high), each None where no bound is known yet.

    `scales` are those that the bets were made at.
    """
    bets = list(zip(slowdowns, scales, strict=True))
    if not bets:
        return None, None
    centre = median(slowdown for slowdown, _ in bets)
    step = median(scale for _, scale in bets)

    def bound(side: int, error: float) -> float | None:
        """Find the nearest value towards a side against which a bettor has won."""
        inner, outer = (_first(bets, side, error, centre, way * step) for way in (-side, side))
        if inner is None or outer is None:
            return None
        for _ in range(40):
            middle = (inner + outer) / 2
            if _wealth(bets, middle, side) >= needed(error):
                outer = middle
            else:
                inner = middle
        return outer

    return bound(-1, low_error), bound(1, high_error)


def _first(bets: Sequence[tuple[float, float]], side: int, error: float, start: float, step: float) -> float | None:
    """Step away from `start`, ever further: towards `side` until a bettor has won, away from it until it has not."""
    wins = step * side > 0
    for i in range(24):
        at = start + step * 2**i
        if (_wealth(bets, at, side) >= needed(error)) is wins:
            return at
    return None


def _wealth(bets: Sequence[tuple[float, float]], at: float, side: int) -> float:
    zs = [side * (at - slowdown) / scale for slowdown, scale in bets]
    return _mean([sum(_won(2 * effect * z) for z in zs) for effect in EFFECTS])


def _won(u: float) -> float:
    """log(1 + tanh(u / 2))."""
    tail = math.log1p(math.exp(-abs(u)))
    return math.log(2) - tail + min(u, 0.0)


def _mean(logs: Sequence[float]) -> float:
    top = max(logs)
    return top + math.log(sum(math.exp(one - top) for one in logs) / len(logs))
