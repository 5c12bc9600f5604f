"""NVML's samples under the agent's check: honest jobs pass for hours, and a greedy one is found out.

A made driver looks at a made job: each look finds the job or the other program on the GPU. Everything is drawn from a
seed, so a run is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from random import Random

import pytest

from oarbank_agent_check import check
from oarbank_agent_check.inputs import SampleSeen
from oarbank_agent_check.sources.nvml_parse import GpuState, Look, Row, step

JOB, OTHER = 7, 8
HOUR = 1800  # windows of 2 s


def governed(share: float, random: Random) -> Iterator[tuple[float, float]]:
    """Yield when the units of a job begin and end: 20 to 90 ms, and idle as long as the share asks."""
    t = 0.0
    while True:
        unit = random.uniform(0.02, 0.09)
        yield t, t + unit
        t += unit / share


def samples(share: float, period_s: float, windows: int, seed: int) -> Iterator[SampleSeen]:
    """Yield what the check hears of a job that holds `share`, from a driver that looks every `period_s`."""
    random = Random(seed)
    units = governed(share, random)
    begin, end = next(units)
    state, at, stamp_us = GpuState(), 0.0, 1_700_000_000_000_000
    for window in range(windows):
        seen = {JOB: 0, OTHER: 0}
        newest = {JOB: 0, OTHER: 0}
        looked = 0
        while at < 2.0 * window:
            while end <= at:
                begin, end = next(units)
            who = JOB if begin <= at else OTHER
            seen[who], newest[who] = seen[who] + 1, stamp_us + round(at * 1e6)
            looked += 1
            at += period_s + random.uniform(-0.003, 0.003)
        rows = tuple(Row(pid, newest[pid], round(100 * seen[pid] / looked)) for pid in seen if seen[pid])
        state, part = step(state, Look(2.0 * window, state.last_us, rows, frozenset(seen)), [JOB])
        for added in part.added:
            assert added.low_ns is not None
            yield SampleSeen(2.0 * window, "", added.busy_ns / 2e9, added.low_ns / 2e9)


def strikes(duty: float, heard: Iterator[SampleSeen]) -> list[float]:
    """Give the moments of the strikes."""
    watch, found = check.Watch(), []
    for sample in heard:
        watch, strike = check.judge(watch, sample, duty)
        found += [sample.t] if strike else []
    return found


@pytest.mark.parametrize("period_s", [1 / 6, 0.5, 1.0])
@pytest.mark.parametrize("duty", [0.1, 0.3, 0.6])
def test_a_job_that_holds_its_duty_is_not_struck_in_an_hour(duty, period_s):
    assert strikes(duty, samples(duty, period_s, HOUR, seed=11)) == []


def test_judged_as_exact_the_same_job_would_be():
    heard = (SampleSeen(s.t, "", s.share) for s in samples(0.3, 1.0, HOUR, seed=11))
    assert len(strikes(0.3, heard)) > 2  # which is why there are bounds


@pytest.mark.parametrize("duty", [0.1, 0.3])
def test_a_job_that_takes_everything_is_struck_within_a_minute(duty):
    # 12 looks in 2 s; that another process runs now and then shows how often the driver looks.
    found = strikes(duty, samples(0.97, 1 / 6, 60, seed=5))
    assert found
    assert min(found) < 60


def test_with_two_looks_a_window_nobody_is_convicted():
    assert strikes(0.05, samples(0.97, 1.0, HOUR // 4, seed=5)) == []


@pytest.mark.parametrize(("duty", "period_s"), [(0.3, 1 / 6), (0.6, 1 / 6), (0.5, 1.0)])
def test_shares_are_right_in_the_mean(duty, period_s):
    shares = [sample.share or 0.0 for sample in samples(duty, period_s, HOUR, seed=3)]
    *_, total = accumulate(shares)
    assert total / len(shares) == pytest.approx(duty, abs=0.03)
