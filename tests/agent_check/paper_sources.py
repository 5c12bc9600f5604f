"""What sources of different resolution read of a job on paper: exact time, CPU ticks, and NVML's few looks.

Each gives a share of a window and, where it is coarse, the lower bound that the real source would give. Virtual time.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache

from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.sources.point_samples import bounds, looks
from tests.agent_check.paper_gpu import Cycle

Reader = Callable[[float, Cycle], tuple[float, float | None]]
"""Reads the window of 2 s that ends at a moment: the share, and its lower bound if the source is coarse."""

TICK_S = 0.01
LOOK_S = {"nvml-1/6s": 1 / 6, "nvml-1s": 1.0}
ROUNDING = 0.005


def exact(t: float, job: Cycle) -> tuple[float, float | None]:
    """A counter of nanoseconds."""
    return (job.busy(t) - job.busy(t - SAMPLE_S)) / SAMPLE_S, None


def ticks(t: float, job: Cycle) -> tuple[float, float | None]:
    """A counter of 10 ms steps."""
    steps = math.floor(job.busy(t) / TICK_S) - math.floor(job.busy(t - SAMPLE_S) / TICK_S)
    return steps * TICK_S / SAMPLE_S, None


def few_looks(period_s: float, uneven: float, rng: random.Random) -> Reader:
    """NVML: a look every `period_s` sees the job or not; its units are uneven by `uneven` (standard deviation).

    Where in its cycle the job is wanders from look to look by what its uneven units add up to, and by nothing else: a
    cycle that is as long as the period, of even units, is always seen or never.
    """
    count = round(SAMPLE_S / period_s)
    phase = rng.random()

    def read(t: float, job: Cycle) -> tuple[float, float | None]:
        nonlocal phase
        cycles = period_s * job.share / job.unit_s
        wander = uneven * math.sqrt(cycles)
        seen = 0
        for _ in range(count):
            phase = (phase + rng.gauss(cycles, wander)) % 1.0
            seen += phase < job.share
        return _point_share(seen, count, round(period_s * 1e6))

    return read


def reader(source: str, rng: random.Random, uneven: float = 0.1) -> Reader:
    """A reader by its name: exact, cpu-ticks, nvml-1/6s or nvml-1s."""
    if source in LOOK_S:
        return few_looks(LOOK_S[source], uneven, rng)
    return {"exact": exact, "cpu-ticks": ticks}[source]


SOURCES = ("exact", "cpu-ticks", *LOOK_S)


@cache
def _point_share(seen: int, count: int, period_us: int) -> tuple[float, float]:
    share = round(100 * seen / count) / 100
    low, _ = bounds(share, looks(round(SAMPLE_S * 1e6), period_us), ROUNDING)
    return share, min(low, share)
