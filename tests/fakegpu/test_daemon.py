"""The fake GPU as a process: its clients, its counters, and how long it lives."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from oarbank_agent_check.readings import ProcessKey
from tests.fakegpu.client import Client, DeviceLost
from tests.fakegpu.reader import HIDDEN, VARIABLE, FakeGpuReader, reading
from tests.fakegpu.running import ROOT, SOCKET, FakeGpu, fake_gpu, start

ME = ProcessKey(os.getpid(), 0.0)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    with fake_gpu() as device:
        monkeypatch.setenv(VARIABLE, device.path)
        yield device


def until(true: Callable[[], bool]) -> None:
    """Wait for something that must come; the test's time limit ends what does not."""
    while not true():
        time.sleep(0.005)


def clients(gpu: FakeGpu) -> int:
    return len(gpu.counters()["clients"]) - 1  # one of them asks


def busy_ns(gpu: FakeGpu) -> int:
    return sum(one["busy_ns"] for one in gpu.counters()["clients"])


def test_buffers_run_in_turn_for_exactly_their_length(gpu: FakeGpu) -> None:
    with Client(gpu.path) as one, Client(gpu.path) as other:
        tickets = [one.submit(0.02), one.submit(0.001)]
        ran = [one.wait(ticket) for ticket in tickets]
        own = other.run(0.003)
        busy = {client["client"]: client["busy_ns"] for client in gpu.counters()["clients"]}

    assert [each.end_ns - each.start_ns for each in ran] == [20_000_000, 1_000_000]
    assert own.busy_s == 0.003
    assert ran[1].start_ns >= ran[0].end_ns
    assert own.start_ns >= ran[1].end_ns
    assert sorted(busy.values()) == [0, 3_000_000, 21_000_000]


def test_the_system_tells_whose_client_it_is(gpu: FakeGpu) -> None:
    code = "import sys, tests.fakegpu.client as c; gpu = c.Client(sys.argv[1]); gpu.run(0.002); input(print())"
    command = [sys.executable, "-c", code, gpu.path]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        used = {one["pid"]: one["busy_ns"] for one in gpu.counters()["clients"]}
        other.communicate("\n")

    assert used == {other.pid: 2_000_000, os.getpid(): 0}


def test_wait_for_all_and_for_one_that_is_long_over(gpu: FakeGpu) -> None:
    with Client(gpu.path) as client:
        client.synchronize()  # nothing to wait for
        first = client.submit(0.001)
        client.submit(0.001)
        client.synchronize()

        assert client.wait(first).busy_s == 0.001
        assert busy_ns(gpu) == 2_000_000


def test_slow_device_tells_what_it_took(gpu: FakeGpu) -> None:
    with Client(gpu.path) as client:
        gpu.slow_down(3)

        assert client.run(0.002).busy_s == 0.006


def test_client_that_vanishes_loses_what_waits(gpu: FakeGpu) -> None:
    gone = Client(gpu.path)
    for _ in range(3):
        gone.submit(0.2)
    until(lambda: busy_ns(gpu) > 0)
    gone.close()
    until(lambda: busy_ns(gpu) == 0)  # its counter goes with its last buffer

    with Client(gpu.path) as client:
        ran = client.run(0.001)

    assert clients(gpu) == 0
    assert ran.busy_s == 0.001


WRONG = ["", "x", "[]", "{}", '{"submit": 0}', '{"submit": 0.5}', '{"submit": 1, "wait": 1}', '{"counters": 1}',
         '{"slowness": 0}', '{"wait": "1"}', '{"burn": 1}', "[" * 9999]  # fmt: skip


@pytest.mark.parametrize("line", WRONG, ids=[line[:20] for line in WRONG])
def test_what_nobody_understands_ends_that_client_alone(gpu: FakeGpu, line: str) -> None:
    with Client(gpu.path) as client:
        client._socket.sendall(line.encode() + b"\n")

        assert b"must be" in client._lines.readline()
        with pytest.raises(DeviceLost):
            client.run(0.001)
    with Client(gpu.path) as another:
        assert another.run(0.001).busy_s == 0.001


@pytest.mark.realtime
def test_waiting_costs_the_daemon_nothing(gpu: FakeGpu) -> None:
    daemon = psutil.Process(gpu.pid)
    before = daemon.cpu_times()
    with Client(gpu.path) as client:
        client.run(0.5)
    after = daemon.cpu_times()

    assert after.user + after.system - before.user - before.system < 0.1


def test_it_ends_with_its_parent() -> None:
    with tempfile.TemporaryDirectory(prefix="fakegpu-") as folder, start(Path(folder)) as daemon:
        assert daemon.stdin is not None
        with Client(os.path.join(folder, SOCKET)) as client:
            daemon.stdin.close()
            with pytest.raises(DeviceLost):
                client.run(600)
        assert daemon.wait() == 0


def test_reader_gives_the_counters_of_the_members_alone(gpu: FakeGpu) -> None:
    source = FakeGpuReader()
    with Client(gpu.path) as client:
        client.run(0.002)
        assert source.hindrance() is None
        mine, nobody = source.read([ME]), source.read([ProcessKey(1, 0.0)])
    source.close()
    source.close()

    assert sorted(counter.value for counter in mine.counters) == [0, 2_000_000]
    assert len({counter.client for counter in mine.counters}) == 2
    assert nobody.counters == ()
    assert nobody.unknown == {}
    assert nobody.t >= mine.t


def test_hidden_process_is_unknown_and_never_zero(gpu: FakeGpu) -> None:
    gpu.hide(os.getpid())

    source = FakeGpuReader()
    found = source.read([ME, ProcessKey(1, 0.0)])
    source.close()

    assert found.counters == ()
    assert found.unknown == {os.getpid(): HIDDEN}


def test_hidden_process_of_somebody_else_is_no_matter_of_ours() -> None:
    answer = {"t_ns": 5_000_000_000, "clients": [], "hidden": [7]}

    assert reading(answer, [ME]).unknown == {}
    assert reading(answer, [ME]).t == 5.0


def test_reader_without_a_device_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    nothing = FakeGpuReader()
    with fake_gpu() as device:
        monkeypatch.setenv(VARIABLE, device.path)
        lost = FakeGpuReader()
        assert lost.hindrance() is None
    monkeypatch.delenv(VARIABLE)

    hindrance = nothing.hindrance()
    assert hindrance is not None
    assert VARIABLE in hindrance.reason
    assert set(lost.read([ME]).unknown) == {ME.pid}
