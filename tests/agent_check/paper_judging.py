"""Jobs on paper before the check: how often an honest one is struck, and how soon one that takes too much."""

from __future__ import annotations

import math
import random

from oarbank_agent_check.check import SAMPLE_S, Watch, began, judge
from oarbank_agent_check.inputs import SampleSeen
from tests.agent_check.paper_gpu import Cycle
from tests.agent_check.paper_sources import reader

DUTIES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
PER_HOUR = round(3600 / SAMPLE_S)
GIVE_UP_S = 600.0


def well_sized(duty: float, share: float, rng: random.Random) -> Cycle:
    """A job whose units fit the duty's share of a second, as `scale()` makes them, and that takes `share`."""
    return Cycle(duty * rng.uniform(0.005, 1.0), share, rng.random())


def false_pauses(source: str, hours: int, rng: random.Random, uneven: float = 0.1) -> int:
    """Strikes of well-sized jobs that hold their duty, another job each hour."""
    strikes = 0
    for _ in range(hours):
        duty = rng.choice(DUTIES)
        job, read = well_sized(duty, duty, rng), reader(source, rng, uneven)
        watch, t = began(Watch(), duty), rng.random()
        for _ in range(PER_HOUR):
            t += SAMPLE_S
            share, low = read(t, job)
            watch, struck = judge(watch, SampleSeen(t, "j", share, low), duty)
            strikes += bool(struck)
    return strikes


def caught_after(source: str, excess: float | None, rng: random.Random) -> float:
    """Seconds from when a job begins to take `excess` above its duty (None: all) to its strike; inf: never.

    It begins at any moment between two samples.
    """
    duty = rng.choice([duty for duty in DUTIES if duty + (excess or 0) < 1])
    before = well_sized(duty, duty, rng)
    takes = 1.0 if excess is None else duty + excess
    after, read = Cycle(before.unit_s, takes, before.phase), reader(source, rng)
    watch, t = began(Watch(), duty), 0.0
    begins = 10 + rng.uniform(0, SAMPLE_S)
    while t < begins + GIVE_UP_S:
        t += SAMPLE_S
        share, low = read(t, before if t <= begins else after)
        if t - SAMPLE_S < begins < t:  # it began in this window
            part = (t - begins) / SAMPLE_S
            quiet, _ = read(t, before)
            share = part * share + (1 - part) * quiet
            low = None if low is None else min(low, share)
        watch, struck = judge(watch, SampleSeen(t, "j", share, low), duty)
        if struck:
            return t - begins
    return math.inf
