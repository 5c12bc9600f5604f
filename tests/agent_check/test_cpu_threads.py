"""The meter as a whole, with a machine on paper: samples, ticks, faults, and its life from start to stop."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable

import pytest

from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.cpu_threads_parse import ProcessReading
from oarbank_agent_check.tree import ProcessTree
from tests.agent_check.wait import eventually

ROOT = ProcessKey(5, 1.0)


class PaperTable:
    """A process table with a root that never ends; a test may add children."""

    pause_s = 0.0

    def __init__(self, root: ProcessKey = ROOT) -> None:
        self.root = root
        self.born: dict[int, ProcessKey] = {}

    def identify(self, pid):
        return self.root if pid == self.root.pid else self.born.get(pid)

    def children(self, pid):
        return list(self.born) if pid == self.root.pid else []

    def newest(self):
        return None

    def begin_round(self):
        pass


class PaperReader:
    """A reader whose every reading is made by a function of its number."""

    clock = "paper"

    def __init__(self, make: Callable[[int], ProcessReading]) -> None:
        self.make, self.numbers, self.closed = make, itertools.count(), False

    def read(self, keys, *, born_after, watch=False):
        return [self.make(next(self.numbers)) for _ in keys]

    def forget(self, keys):
        pass

    def close(self):
        self.closed = True


def paper(make) -> CpuThreads:
    return CpuThreads(ProcessTree(ROOT.pid, table=PaperTable()), reader=PaperReader(make))


def growing(number: int) -> ProcessReading:
    return ProcessReading(ROOT, number * 1000, {1: number * 1000})


def ran(meter: CpuThreads, ticks: int = 3) -> None:
    eventually(lambda: len(meter.ticks()) >= ticks or meter._fault is not None, "the meter ticks")


def test_it_is_a_source():
    source: Source = paper(growing)
    assert (source.name, bool(source.reads)) == ("cpu-threads", True)


def test_samples_follow_one_another_without_a_gap_or_an_overlap():
    meter = paper(growing)
    meter.start()
    samples = []
    for _ in range(3):
        ran(meter, len(meter.ticks()) + 2)
        samples.append(meter.sample())
    meter.stop()
    ticks = meter.ticks()
    covered = sum(sample.window_s for sample in samples)
    within = [tick for tick in ticks if tick.t <= ticks[0].t - ticks[0].dt_s + covered + 1e-9]
    assert sum(tick.dt_s for tick in within) == pytest.approx(covered)
    assert sum(tick.gain_s for tick in within) == pytest.approx(sum(sample.busy_s for sample in samples))
    assert all(sample.pids == (5,) and sample.unknown == () for sample in samples)
    assert all(sample.processes[0].start == 1.0 for sample in samples)


def test_what_cannot_be_read_once_is_unknown_for_that_sample_and_known_in_the_next():
    blind = Unknown("hidden. Run as its owner.")
    sick = threading.Event()

    def make(number: int) -> ProcessReading:
        return ProcessReading(ROOT, None, None, unknown=blind) if sick.is_set() else growing(number)

    meter = paper(make)
    meter.start()
    ran(meter)
    sick.set()
    ran(meter, len(meter.ticks()) + 3)
    sick.clear()
    ran(meter, len(meter.ticks()) + 3)
    first = meter.sample()
    ran(meter, len(meter.ticks()) + 3)
    second = meter.sample()
    meter.stop()
    assert (first.share, first.busy_s, [u.reason for u in first.unknown]) == (None, None, [blind.reason])
    assert first.processes[0].to_json()["busy_s"] is None
    assert second.unknown == ()
    assert second.busy_s is not None
    assert second.busy_s > 0


def test_a_meter_that_broke_says_unknown_and_not_zero():
    def make(number: int) -> ProcessReading:
        if number > 2:
            raise RuntimeError("no more paper")
        return growing(number)

    meter = paper(make)
    meter.start()
    eventually(lambda: meter._fault is not None, "the meter breaks")
    sample = meter.sample()
    meter.stop()
    assert (sample.share, sample.busy_s) == (None, None)
    assert [process.to_json()["busy_s"] for process in sample.processes] == [None]
    assert sample.unknown[0].pid is None
    assert "no more paper" in sample.unknown[0].reason


def test_it_starts_once_and_stops_as_often_as_one_likes():
    meter = paper(growing)
    for ask in (meter.sample, meter.ticks, meter.lateness):
        with pytest.raises(RuntimeError, match="must come first"):
            ask()
    meter.start()
    with pytest.raises(RuntimeError, match="works once"):
        meter.start()
    ran(meter)
    meter.stop()
    meter.stop()
    assert meter._reader.closed
    count = len(meter.ticks())
    assert meter.sample().busy_s > 0
    assert len(meter.ticks()) == count
    with pytest.raises(ValueError, match="window must be above 0"):
        meter.sample()


class KeyedReader(PaperReader):
    """A reader for which every process has used one second since it began, and no more."""

    def __init__(self) -> None:
        super().__init__(growing)

    def read(self, keys, *, born_after, watch=False):
        return [ProcessReading(key, 10**9, {1: 10**9}, key.start >= born_after) for key in keys]


def test_whoever_lives_at_the_start_is_old_even_if_its_start_time_says_otherwise():
    """Start times are coarse: one that began just before the meter can seem to have begun just after."""
    table = PaperTable(ProcessKey(5, time.time() + 60))
    meter = CpuThreads(ProcessTree(5, table=table), reader=KeyedReader())
    meter.start()
    ran(meter)
    sample = meter.sample()
    meter.stop()
    assert sample.busy_s == 0.0


@pytest.mark.parametrize(("start", "busy_s"), [(60, 1.0), (-60, 0.0)])
def test_a_process_that_joins_counts_whole_if_it_began_after_the_meter(start, busy_s):
    table = PaperTable()
    meter = CpuThreads(ProcessTree(5, table=table), reader=KeyedReader())
    meter.start()
    ran(meter)
    table.born[6] = ProcessKey(6, time.time() + start)
    ran(meter, len(meter.ticks()) + 3)
    table.born.clear()
    ran(meter, len(meter.ticks()) + 3)
    sample = meter.sample()
    meter.stop()
    assert sample.pids == (5, 6)
    assert sample.busy_s == pytest.approx(busy_s)
    assert {process.pid: process.busy for process in sample.processes} == {5: 0, 6: round(busy_s * 10**9)}


@pytest.mark.parametrize("tick_s", [0, -1, 2, float("nan")])
def test_a_senseless_tick_is_refused(tick_s):
    with pytest.raises(ValueError, match="tick_s: must be above 0"):
        CpuThreads(ProcessTree(ROOT.pid, table=PaperTable()), tick_s)
