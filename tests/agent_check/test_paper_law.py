"""The law on a GPU on paper: `benchmarks/law.py` in short, and what the check can and can't see, at any phase."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.check import MARGIN, Watch, began, judge
from oarbank_agent_check.inputs import SampleSeen
from tests.agent_check.paper_agent import METRIC_S, Agent
from tests.agent_check.paper_gpu import Cycle, PaperGpu, Worker
from tests.agent_check.paper_judging import caught_after, false_pauses
from tests.agent_check.paper_sources import SOURCES, exact


@pytest.mark.parametrize("source", SOURCES)
def test_no_honest_job_is_struck_by_any_source(source):
    assert false_pauses(source, 8, random.Random(11)) == 0


def test_the_same_judges_strike_a_job_that_takes_too_much():
    rng = random.Random(12)

    for source in ("exact", "cpu-ticks"):
        assert statistics.median(caught_after(source, 0.15, rng) for _ in range(50)) <= 10
    assert statistics.median(caught_after("nvml-1/6s", None, rng) for _ in range(50)) <= 10


@given(st.floats(0.02, 0.98), st.floats(0.001, 1.0), st.floats(0, 1))
def test_units_of_up_to_six_tenths_of_a_second_off_are_never_struck(duty, size, phase):
    job = Cycle(0.6 / (1 - duty) * size, duty, phase)
    watch = began(Watch(), duty)
    for i in range(1, 200):
        watch, struck = judge(watch, SampleSeen(2.0 * i, "j", *exact(2.0 * i, job)), duty)
        assert not struck


@pytest.mark.parametrize("phase", [0.0, 0.013, 0.3, 0.999])
def test_bursts_of_two_seconds_fill_windows_and_are_missed_so_sizes_matter(phase):
    duty, job = 0.05, Cycle(2.0, 0.05, phase)
    watch, shares, strikes = began(Watch(), duty), [], 0
    for i in range(1, 1800):
        share, _ = exact(2.0 * i, job)
        watch, struck = judge(watch, SampleSeen(2.0 * i, "j", share), duty)
        shares.append(share)
        strikes += bool(struck)

    assert max(shares) > duty + MARGIN + 0.3
    assert strikes == 0


def test_harm_brings_zero_with_the_first_row_and_the_gpu_is_free_a_unit_later():
    agent = Agent(PaperGpu([Worker(0.02), Worker(0.02)], random.Random(1)), target=0.05)
    agent.gpu.run(7.3)
    agent.starts(0.6)
    agent.go_on(20)

    assert agent.zero_at == pytest.approx(7.3 + METRIC_S)
    assert max(worker.units[-1][2] for worker in agent.gpu.workers) < agent.zero_at + 0.1
    assert agent.gpu.slowed(12) == pytest.approx(0)


def test_half_is_gone_within_the_row_that_shows_the_target_reached():
    agent = Agent(PaperGpu([Worker(0.005)], random.Random(2)), target=0.05)
    agent.gpu.run(5)
    agent.starts(0.3)
    rows = []
    while agent.gpu.workers[0].duty == 0.3:
        agent.go_on(agent.gpu.now + METRIC_S)
        heard = agent.state.programs[""].heard
        assert heard is not None
        rows.append(heard.value)

    assert all(value < 1 for value in rows[:-1])
    assert 1 <= rows[-1] < 2
    assert agent.gpu.workers[0].duty == pytest.approx(0.15)


def test_a_device_charged_worker_holds_its_duty_and_a_wall_charged_one_less():
    held = {}
    for charged in ("wall", "device"):
        worker = Worker(0.001, charged, duty=0.3)
        gpu = PaperGpu([worker], random.Random(5), frame=0.0)
        gpu.run(20)
        held[charged] = worker.held(1, 20)

    assert held["device"] == pytest.approx(0.3, abs=0.005)
    assert held["wall"] < 0.2


def test_jobs_go_on_when_the_program_has_left():
    agent = Agent(PaperGpu([Worker(0.005), Worker(0.005)], random.Random(4)), target=0.05)
    agent.starts(0.4)
    agent.go_on(30)
    agent.ends()
    agent.go_on(40)

    assert [worker.duty for worker in agent.gpu.workers] == [None, None]
    assert sum(worker.held(35, 40) for worker in agent.gpu.workers) == pytest.approx(1, abs=0.01)
    assert agent.pauses == 0
