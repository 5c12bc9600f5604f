"""The governor with real threads, real waits and forks: order and counts, no tight bounds."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from oarbank_sdk import control, duty
from oarbank_sdk.duty import Duty
from tests import needs

pytestmark = pytest.mark.realtime


def wait_until(condition) -> None:
    for _ in range(20_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("did not come true within 20 s")


def start(target) -> threading.Thread:
    thread = threading.Thread(target=target)
    thread.start()
    return thread


def test_set_from_another_thread_ends_a_wait_at_duty_0():
    governor = Duty(None)
    governor.set(0)
    ran = threading.Event()

    def work() -> None:
        with governor.unit():
            ran.set()

    thread = start(work)
    wait_until(governor._turn.locked)
    assert not ran.wait(0.05)
    governor.set(0.2)
    assert ran.wait(20)
    thread.join()


def test_set_none_lifts_the_limit():
    governor = Duty(None)
    governor.set(0)
    thread = start(lambda: governor.unit().__enter__())
    wait_until(governor._turn.locked)
    governor.set(None)
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.parametrize("kind", [control.Stopped, duty.Stopped])
def test_close_ends_a_wait_with_stopped_of_both_modules(kind):
    governor = Duty(None)
    governor.set(0)
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with governor.unit():
                pass
        except kind as stopped:
            caught.append(stopped)

    threads = [start(work) for _ in range(3)]
    wait_until(lambda: len(governor._queue) == 2)
    governor.close()
    for thread in threads:
        thread.join(20)
    assert len(caught) == 3


@needs.posix("nudges are signals")
def test_close_ends_the_wait_of_a_runner_with_a_control_document(tmp_path):
    (tmp_path / "control.json").write_text('{"seq": 0, "gpu_duty": 0}')
    governor = Duty(control.Control(tmp_path))
    caught: list[BaseException] = []

    def work() -> None:
        try:
            with governor.unit():
                pass
        except control.Stopped as stopped:
            caught.append(stopped)

    thread = start(work)
    wait_until(governor._turn.locked)
    governor.close()
    thread.join(20)
    assert caught


def test_one_unit_runs_at_a_time():
    governor = Duty(None)
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            with governor.unit():
                inside += 1
                most = max(most, inside)
                time.sleep(0)
                inside -= 1

    threads = [start(work) for _ in range(4)]
    for thread in threads:
        thread.join(60)
    assert most == 1
    assert governor.units == 800


def test_threads_take_turns_in_the_order_they_asked():
    governor = Duty(None)
    order: list[int] = []
    with governor.unit():
        threads = []
        for number in range(5):

            def work(number: int = number) -> None:
                with governor.unit():
                    order.append(number)

            threads.append(start(work))
            wait_until(lambda count=number + 1: len(governor._queue) == count)
    for thread in threads:
        thread.join(20)
    assert order == [0, 1, 2, 3, 4]


@needs.posix("fork")
def test_a_forked_child_starts_without_debt_and_without_anybodys_turn(tmp_path):
    events = tmp_path / "events.ndjson"
    governor = Duty(None, events)
    governor.set(0.001)
    with governor.unit():
        time.sleep(0.05)  # owes 50 s
        pid = os.fork()
        if pid == 0:
            with governor.unit():
                pass
            os._exit(0 if governor.units == 1 else 1)
    for _ in range(2000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        raise AssertionError("the child waits for its parent's debt or turn")
    assert os.waitstatus_to_exitcode(status) == 0


def test_lines_stay_whole_beside_other_writers(tmp_path):
    events = tmp_path / "events.ndjson"
    other = {"t": 1.0, "kind": "log", "msg": "x" * 3000}
    done = threading.Event()

    def append() -> None:
        with open(events, "ab", buffering=0) as file:
            while not done.is_set():
                file.write(json.dumps(other).encode() + b"\n")

    thread = start(append)
    for _ in range(300):
        governor = Duty(None, events)
        governor._write({"t": 2.0, "kind": "metric"})
    done.set()
    thread.join()
    lines = [json.loads(line) for line in events.read_bytes().splitlines()]
    assert sum(line["kind"] == "metric" for line in lines) == 300


@needs.linux("a device that is always full")
def test_a_full_disk_tears_one_line_and_the_next_is_whole(tmp_path, monkeypatch, capfd):
    governor = Duty(None, "/dev/full")
    governor._write({"t": 1.0})
    governor._write({"t": 1.0})
    assert capfd.readouterr().err.count("No space left") == 1
    torn = tmp_path / "events.ndjson"
    governor = Duty(None, torn)
    torn.write_bytes(b'{"t": 1, "ki')
    governor._torn = True
    governor._write({"t": 2.0})
    assert torn.read_bytes().splitlines()[-1] == b'{"t": 2.0}'


def test_the_idle_keeps_its_length_when_the_system_clock_is_set_back(monkeypatch):
    governor = Duty(None)
    governor.set(0.5)
    with governor.unit():
        time.sleep(0.1)
    wall = time.time()
    monkeypatch.setattr(time, "time", lambda: wall - 3600)
    before = time.perf_counter()
    with governor.unit():
        pass
    assert 0.05 < time.perf_counter() - before < 20
