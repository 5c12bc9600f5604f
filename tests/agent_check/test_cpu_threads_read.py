"""The readers of thread clocks, on this process itself."""

from __future__ import annotations

import os
import threading
import time

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.readings import ProcessKey
from oarbank_agent_check.sources.cpu_threads_read import MOST_FILES, ProcThreads, PsutilThreads, system_reader
from tests.agent_check.wait import eventually

LINUX = pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc and thread clocks")
FOREVER = float("inf")


@LINUX
@pytest.mark.parametrize("fine", [True, False])
def test_both_files_of_a_thread_give_its_time(fine):
    if fine and not os.path.exists("/proc/thread-self/schedstat"):
        pytest.skip("needs Linux: a kernel with schedstat")
    reader = ProcThreads(fine=fine)
    key = ProcessKey(os.getpid(), 1.0)
    [before] = reader.read([key], born_after=FOREVER)
    used = time.thread_time_ns()
    while time.thread_time_ns() < used + 60_000_000:
        pass
    own = time.thread_time_ns() - used
    [after] = reader.read([key], born_after=FOREVER)
    reader.close()
    gain = after.threads[threading.get_native_id()] - before.threads[threading.get_native_id()]
    assert abs(gain - own) < 21_000_000  # two steps of the coarser file
    assert after.total_ns - before.total_ns >= own * 0.9


@LINUX
def test_many_threads_are_all_read_and_files_stay_few():
    gate = threading.Event()
    threads = [threading.Thread(target=gate.wait) for _ in range(MOST_FILES + 30)]
    for thread in threads:
        thread.start()
    reader = ProcThreads()
    key = ProcessKey(os.getpid(), 1.0)
    before = len(os.listdir("/proc/self/fd"))
    try:
        [reading] = reader.read([key], born_after=FOREVER, watch=True)
        assert {thread.native_id for thread in threads} <= reading.threads.keys()
        assert len(os.listdir("/proc/self/fd")) - before <= MOST_FILES
    finally:
        gate.set()
        for thread in threads:
            thread.join()

    def few_files() -> bool:  # a thread that was joined is listed for a moment more
        reader.read([key], born_after=FOREVER, watch=True)
        return len(os.listdir("/proc/self/fd")) - before <= 2 * len(os.listdir("/proc/self/task"))

    eventually(few_files, "files of threads that have ended are closed")
    reader.close()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize("reader", [system_reader, PsutilThreads])
def test_a_process_that_is_gone_is_left_out(reader):
    assert reader().read([ProcessKey(1 << 30, 1.0)], born_after=FOREVER) == []


def test_psutil_reads_this_process_too():
    [reading] = PsutilThreads().read([ProcessKey(os.getpid(), 1.0)], born_after=FOREVER)
    assert reading.total_ns is None
    assert sum(reading.threads.values()) > 0
