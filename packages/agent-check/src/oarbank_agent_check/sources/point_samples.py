"""What a few point samples can say of a share: the bounds around it.

NVIDIA's driver looks at a GPU every 1/6 s to 1 s, by product, and each look names one process. A share of two seconds
thus rests on 2 to 12 looks: a job that holds 0.3 shows 0.5 in one window and 0 in the next. Decides how far such a
share may be from the truth. Pure.
"""

from __future__ import annotations

import math
from itertools import pairwise

LONGEST_PERIOD_US = 1_000_000
SHORTEST_PERIOD_US = 160_000
"""1/6 s with a little slack: stamps that lie closer together are of one look."""

DOUBT = 0.005
"""How often the true share may lie below the lower bound: one window in 200.

Three windows in a row are needed to hold it against a job: (1/200)^3 a window, with 1800 windows an hour, is one false
pause in about 4400 hours of a job that sits 0.1 above its duty; one at its duty is further from it still. With 12
looks in 2 s a job that is seen in all of them is sure to hold 0.64, with 2 looks only 0.07: on GPUs that are looked at
once a second no window of 2 s convicts anybody, and accounting mode is what helps. The looks must not fall in step
with the job: a job whose cycle is as long as the driver's period, to a thousandth, is seen always or never.
"""


def looks(window_us: int, period_us: int) -> int:
    """Say how many looks a window holds at least, if they are `period_us` apart at most."""
    return max(1, window_us // max(period_us, SHORTEST_PERIOD_US))


def shorter_period(period_us: int, stamps: list[int]) -> int:
    """Give the longest period still possible once these stamps, each of one look, were seen: no two lie closer."""
    ordered = sorted(set(stamps))
    apart = [b - a for a, b in pairwise(ordered) if b - a >= SHORTEST_PERIOD_US]
    return min([period_us, *apart])


def bounds(share: float, count: int, rounding: float = 0.0) -> tuple[float, float]:
    """Give the lowest and highest true share, 0 to 1, that `count` looks with this mean still allow.

    Chernoff's bound, true for any looks between 0 and 1 that don't depend on each other: a true share q shows a mean
    of p or more (or less) with a chance of at most exp(-count * kl(p, q)). `rounding` is how far the mean is rounded.
    """
    most = math.log(1 / DOUBT) / count
    low = _farthest(max(0.0, share - rounding), 0.0, most)
    high = _farthest(min(1.0, share + rounding), 1.0, most)
    return low, high


def _farthest(p: float, end: float, most: float) -> float:
    """Give the q between p and `end` that is farthest from p with kl(p, q) at most `most`, by halving."""
    if _kl(p, end) <= most:
        return end
    near, far = p, end
    for _ in range(50):
        middle = (near + far) / 2
        near, far = (middle, far) if _kl(p, middle) <= most else (near, middle)
    return far


def _kl(p: float, q: float) -> float:
    return _term(p, q) + _term(1 - p, 1 - q)


def _term(p: float, q: float) -> float:
    if p <= 0:
        return 0.0
    return math.inf if q <= 0 else p * math.log(p / q)
