"""The meter on real programs that write down what they burned.

Each comparison is with the program's own thread clocks over the same stretch of time, never with what it would have
done on an idle machine; what the ticks across both ends may hide is measured too, and allowed for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.ticks import Tick
from oarbank_agent_check.tree import ProcessTree
from tests.agent_check.wait import eventually

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc and thread clocks"),
]


def ran(meter: CpuThreads, ticks: int = 3) -> None:
    eventually(lambda: len(meter.ticks()) >= ticks, "the meter ticks")


@dataclass
class Burner:
    """A running `burner.py` and what it wrote down so far."""

    process: subprocess.Popen
    log: Path

    def units(self) -> list[tuple[float, float, float]]:
        """Give (begin, end, CPU time) of every unit written down, on the monotonic clock, in seconds."""
        text = self.log.read_text() if self.log.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        return [tuple(map(float, line.split())) for line in lines]


@pytest.fixture
def burn(tmp_path):
    started: list[Burner] = []

    def start(*arguments: object) -> Burner:
        log = tmp_path / f"log{len(started)}"
        command = [sys.executable, str(Path(__file__).with_name("burner.py")), str(log), *map(str, arguments)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(Burner(process, log))
        return started[-1]

    yield start
    for burner in started:
        with suppress(ProcessLookupError):
            os.killpg(burner.process.pid, signal.SIGKILL)
        burner.process.wait()
        burner.process.stdin.close()
        burner.process.stdout.close()


@dataclass
class Measured:
    """What the meter and the program itself say about the same stretch of time, from the begin of a unit to an end."""

    meter_s: float
    own_s: float  # CPU time that the program's units used
    unsure_s: float  # the ticks across both ends, and what clocks may lag
    units: list[tuple[float, float, float]]
    sample: Sample


def measured(burner: Burner, tree: ProcessTree | None = None, *, busy_s: float = 1.0) -> Measured:
    """Meter a burner until it has burned that much CPU time in the stretch that is compared."""
    eventually(lambda: len(burner.units()) > 1, "the program works")
    meter = CpuThreads(tree or ProcessTree(burner.process.pid))
    meter.start()
    ran(meter)
    since = meter.ticks()[-1].t
    within: list[tuple[float, float, float]] = []

    def enough() -> bool:
        within[:] = [unit for unit in burner.units() if unit[0] > since]
        return sum(unit[2] for unit in within) >= busy_s

    eventually(enough, f"the program burns {busy_s} s")
    # The last unit is written down after it ends: one more tick shows all of it.
    last = max(unit[1] for unit in within)
    eventually(lambda: meter.ticks()[-1].t > last + 0.02, "the meter has seen the end")
    sample = meter.sample()
    meter.stop()
    first = min(unit[0] for unit in within)
    ticks = meter.ticks()
    gained = sum(tick.gain_s for tick in ticks if first < tick.t <= last)
    return Measured(gained, sum(unit[2] for unit in within), across(ticks, first) + across(ticks, last), within, sample)


def across(ticks: list[Tick], moment: float) -> float:
    """Give how much of the ticks around a moment may belong to its other side: the tick itself and a clock's step."""
    lengths = [tick.dt_s for tick in ticks if tick.t - tick.dt_s <= moment + 0.01 and moment - 0.01 <= tick.t]
    return max(lengths, default=0.0) + 0.012


def union_s(units: list[tuple[float, float, float]]) -> float:
    """Give the time during which at least one unit was under way."""
    covered = end = 0.0
    for unit_begin, unit_end, _cpu in sorted(units):
        covered += max(0.0, unit_end - max(unit_begin, end))
        end = max(end, unit_end)
    return covered


@pytest.mark.parametrize(("busy_s", "rest_s"), [(0.002, 0.005), (0.03, 0.07), (0.2, 0.1)])
def test_one_thread_reads_what_its_own_clock_says(burn, busy_s, rest_s):
    found = measured(burn("duty", busy_s, rest_s))
    # Between units the program does a little besides: it writes its log.
    assert -found.unsure_s <= found.meter_s - found.own_s <= found.unsure_s + 0.06 * found.own_s + 0.03
    assert found.sample.share is not None
    assert found.sample.detail


@pytest.mark.parametrize(("mode", "busy_s"), [("fresh", 0.08), ("pool", 0.08), ("pool", 0.02)])
def test_work_that_hops_over_threads_reads_whole(burn, mode, busy_s):
    """The busiest thread alone would read a third of it in the pool, and a few hundredths in fresh threads."""
    found = measured(burn(mode, busy_s), busy_s=1.6)
    assert found.meter_s >= 0.75 * found.own_s - found.unsure_s
    assert found.meter_s <= 1.25 * found.own_s + found.unsure_s


@pytest.mark.parametrize(("busy_s", "period_s"), [(0.004, 0.02), (0.03, 0.1)])
def test_lockstep_reads_no_more_than_the_time_any_unit_was_under_way(burn, busy_s, period_s):
    """And no less than one of the two processes used. On one CPU alone they cannot run side by side."""
    found = measured(burn("lockstep", busy_s, period_s), busy_s=1.0)
    assert len(found.sample.pids) == 2
    assert found.own_s / 2 * 0.9 - found.unsure_s <= found.meter_s
    assert found.meter_s <= union_s(found.units) * 1.1 + found.unsure_s


@pytest.mark.parametrize("mode", ["child", "helper"])
def test_a_child_or_a_helper_thread_that_burns_beside_an_idle_one_shows(burn, mode):
    found = measured(burn(mode, 0.02, 0.01))
    assert found.meter_s >= 0.9 * found.own_s - found.unsure_s
    assert found.sample.share > 0
    assert len(found.sample.pids) == (2 if mode == "child" else 1)


def test_a_process_left_behind_by_its_parent_shows_when_it_is_handed_in(burn):
    burner = burn("detached", 0.02, 0.01)
    left: list[int] = []
    tree = ProcessTree(burner.process.pid, adopted=lambda: left)
    alone = ProcessTree(burner.process.pid)
    burner.process.stdin.write("go\n")
    burner.process.stdin.flush()
    left.append(int(burner.process.stdout.readline()))
    try:
        found = measured(burner, tree)
        assert left[0] in found.sample.pids
        assert found.meter_s >= 0.9 * found.own_s - found.unsure_s
        assert left[0] not in alone.pids()
    finally:
        os.kill(left[0], signal.SIGKILL)


def test_a_program_that_does_nothing_reads_a_known_zero(burn):
    burner = burn("idle")
    eventually(lambda: bool(burner.units()), "the program sleeps")
    meter = CpuThreads(ProcessTree(burner.process.pid))
    meter.start()
    ran(meter, 50)
    sample = meter.sample()
    meter.stop()
    assert sample.share is not None
    assert sample.share < 0.02
    assert sample.unknown == ()


def test_a_process_that_ends_leaves_a_known_sample_behind(burn):
    burner = burn("duty", 0.01, 0.01)
    eventually(lambda: len(burner.units()) > 1, "the program works")
    tree = ProcessTree(burner.process.pid)
    meter = CpuThreads(tree)
    meter.start()
    ran(meter, 20)
    burner.process.kill()
    burner.process.wait()
    eventually(lambda: not tree.pids(), "it has ended")
    ran(meter, len(meter.ticks()) + 30)
    sample = meter.sample()
    assert sample.pids == (burner.process.pid,)
    assert sample.busy_s is not None
    ran(meter, len(meter.ticks()) + 3)
    after = meter.sample()
    meter.stop()
    assert (after.pids, after.busy_s, after.share) == ((), 0.0, 0.0)


def test_most_ticks_are_at_most_5_ms_and_the_meter_says_how_late_the_others_were(burn):
    meter = CpuThreads(ProcessTree(burn("duty", 0.005, 0.01).process.pid))
    meter.start()
    ran(meter, 300)
    median, worst = meter.lateness()
    ticks = meter.ticks()
    meter.stop()
    late = [tick.dt_s for tick in ticks if tick.dt_s > 0.005]
    assert all(length - 0.005 <= worst for length in late)
    assert 0 <= median <= worst
    assert 0 < meter.cost() < 0.5
