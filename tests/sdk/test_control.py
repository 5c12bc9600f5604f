"""Control in process: what a document puts in force, nudges, pauses, stops. Nudges are real signals."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from oarbank_sdk.control import Control, Stopped
from tests import needs

pytestmark = needs.posix("nudges are signals; test_control_windows.py is about the other kind")

INTEROP = Path(__file__).parents[1] / "contracts" / "interop"


def in_force(ctl: Control) -> dict:
    return {name: getattr(ctl, name) for name in ("seq", "stop", "pause", "threads", "gpu_duty")}


NOTHING = {"seq": -1, "stop": False, "pause": False, "threads": None, "gpu_duty": None}


# ---- documents --------------------------------------------------------------------------------------


def test_without_a_file_nothing_is_in_force(agent):
    assert in_force(Control(agent.workdir)) == NOTHING


@pytest.mark.parametrize(
    ("document", "state"),
    [
        pytest.param({"seq": 4, "gpu_duty": True}, {"seq": 4, "gpu_duty": 0.0}, id="true is no duty"),
        pytest.param({"seq": 4, "gpu_duty": "1"}, {"seq": 4, "gpu_duty": 0.0}, id="text is no duty"),
        pytest.param({"seq": 4, "gpu_duty": [1]}, {"seq": 4, "gpu_duty": 0.0}, id="a list is no duty"),
        pytest.param({"seq": 4, "gpu_duty": -3}, {"seq": 4, "gpu_duty": 0.0}, id="below 0 is 0"),
        pytest.param({"seq": 4, "gpu_duty": 10**400}, {"seq": 4, "gpu_duty": 1.0}, id="a huge number is 1"),
        pytest.param({"seq": 4, "gpu_duty": 0.3}, {"seq": 4, "gpu_duty": 0.3}, id="a duty"),
        pytest.param({"seq": True}, {}, id="true is no seq"),
        pytest.param({"seq": "7"}, {}, id="text is no seq"),
        pytest.param({"stop": True}, {}, id="no seq, nothing"),
        pytest.param({"seq": 1, "stop": 1}, {"seq": 1}, id="only true stops"),
        pytest.param({"seq": 1, "pause": "yes"}, {"seq": 1}, id="only true pauses"),
        pytest.param({"seq": 1, "threads": "4"}, {"seq": 1, "threads": 1}, id="unusable threads are 1"),
        pytest.param({"seq": 1, "threads": 4.0}, {"seq": 1, "threads": 4}, id="4.0 threads are 4"),
        pytest.param({"seq": 1, "threads": -2}, {"seq": 1, "threads": 1}, id="threads below 1 are 1"),
        pytest.param("", {}, id="empty"),
        pytest.param('{"seq": 3, "gpu_', {}, id="truncated"),
        pytest.param("[1]", {}, id="no object"),
        pytest.param('\ufeff{"seq": 3}', {}, id="byte order mark"),
        pytest.param('{"seq": 3}'.encode("utf-16"), {}, id="UTF-16"),
        pytest.param(b'{"seq": 3, "x": "\xff"}', {}, id="no UTF-8"),
        pytest.param('{"seq": 3, "x": ' + "[" * 100_000, {}, id="nested past every limit"),
        pytest.param('{"seq": 3, "x": ' + "9" * 10_000 + "}", {}, id="digits past every limit"),
    ],
)
def test_a_document_puts_in_force(agent, document, state):
    agent.write(document)
    assert in_force(Control(agent.workdir)) == NOTHING | state


def interop(kind: str) -> list[dict]:
    return [row for row in json.loads((INTEROP / "INDEX.json").read_text())["documents"] if row["kind"] == kind]


@pytest.mark.parametrize("row", interop("control"), ids=lambda row: row["file"])
def test_interop_document_is_read_as_agreed(agent, row):
    agent.write((INTEROP / row["file"]).read_bytes())
    ctl = Control(agent.workdir)
    wanted = row["reader"]
    if isinstance(wanted, str):
        assert in_force(ctl) == NOTHING
        return
    for name, value in wanted.items():
        if name != "note":
            assert getattr(ctl, name) == value, name
    assert ctl.gpu_duty_fault is None or ctl.gpu_duty == 0.0


@pytest.mark.parametrize("row", interop("control-seq"), ids=lambda row: row["file"])
def test_interop_sequence_is_followed_as_agreed(agent, row):
    ctl = None
    for step in json.loads((INTEROP / row["file"]).read_text())["steps"]:
        if "write" in step:
            agent.write(step["write"])
        if step.get("remove"):
            agent.path.unlink(missing_ok=True)
        wanted = dict(step["expect"])
        if step["do"] == "create":
            ctl = Control(agent.workdir)
        else:
            assert ctl is not None
            if "nudge" in step["do"]:
                agent.nudge()
            act = ctl.safe_point if "safe_point" in step["do"] else ctl.check
            if wanted.pop("raises", None):
                with pytest.raises(Stopped):
                    act()
            else:
                act()
        for name, value in wanted.items():
            assert getattr(ctl, name) == value, step


def test_a_change_without_a_nudge_is_not_read(agent):
    ctl = Control(agent.workdir)
    agent.write({"seq": 2, "gpu_duty": 0.5})
    ctl.check()
    assert ctl.seq == -1
    agent.nudge()
    ctl.check()
    assert (ctl.seq, ctl.gpu_duty) == (2, 0.5)


@pytest.mark.parametrize(("seq", "applied"), [(5, False), (4, False), (6, True), (9, True)])
def test_only_a_greater_seq_is_newer(agent, seq, applied):
    agent.write({"seq": 5, "gpu_duty": 0.5})
    ctl = Control(agent.workdir)
    agent.write({"seq": seq, "gpu_duty": 0.9})
    assert ctl.refresh() is applied
    assert ctl.gpu_duty == (0.9 if applied else 0.5)


def test_a_document_is_the_whole_state(agent):
    agent.write({"seq": 1, "gpu_duty": 0.5, "threads": 2, "pause": True})
    ctl = Control(agent.workdir)
    agent.write({"seq": 2})
    ctl.refresh()
    assert in_force(ctl) == NOTHING | {"seq": 2}


def test_checkpoint_counts_only_with_stop(agent):
    agent.write({"seq": 1, "checkpoint": True})
    ctl = Control(agent.workdir)
    assert not ctl.checkpoint_requested
    agent.write({"seq": 2, "checkpoint": True, "stop": True})
    ctl.refresh()
    assert ctl.checkpoint_requested


# ---- holding ----------------------------------------------------------------------------------------


@pytest.mark.realtime
def test_a_pause_holds_without_cpu_until_it_is_lifted(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)
    thread = agent.later(0.5, lambda: agent.say(pause=False))
    cpu = time.thread_time()
    ctl.safe_point()
    assert time.thread_time() - cpu < 0.05
    thread.join()
    assert ctl.paused_s >= 0.4


@pytest.mark.realtime
def test_a_stop_ends_a_hold_and_every_later_safe_point(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)
    thread = agent.later(0.05, lambda: agent.say(pause=True, stop=True))
    for act in (ctl.safe_point, ctl.safe_point, ctl.check):
        with pytest.raises(Stopped):
            act()
    thread.join()


@pytest.mark.realtime
def test_a_worker_thread_holds_and_is_released(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)
    released = threading.Event()
    holders = [threading.Thread(target=lambda: (ctl.safe_point(), released.set())) for _ in range(3)]
    for thread in holders:
        thread.start()
    time.sleep(0.05)
    assert not released.is_set()
    agent.say()
    for thread in holders:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.realtime
def test_the_main_thread_is_released_when_another_thread_gets_the_signal(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)

    def lift() -> None:
        agent.seq += 1
        agent.write({"seq": agent.seq})
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    thread = agent.later(0.05, lift)
    ctl.safe_point()
    thread.join()


@pytest.mark.realtime
def test_wait_ends_by_a_document_by_wake_and_by_time(agent):
    ctl = Control(agent.workdir)
    assert ctl.wait(0.01) is False
    thread = agent.later(0.05, lambda: agent.say(gpu_duty=0.5), ctl.wake)
    assert ctl.wait(60) is True
    assert ctl.wait(60) is False
    thread.join()
    assert ctl.wait(60, newer_than=0) is True  # seq 1 is in force already


@pytest.mark.realtime
def test_a_document_that_is_not_newer_does_not_end_a_wait(agent):
    agent.write({"seq": 5})
    ctl = Control(agent.workdir)
    agent.seq = 0
    thread = agent.later(0.05, lambda: agent.say(), lambda: agent.write({"seq": 6}), agent.nudge)
    assert ctl.wait(60) is True
    assert ctl.seq == 6
    thread.join()


def test_control_off_the_main_thread_is_refused_and_changes_no_handler(agent):
    before = signal.getsignal(signal.SIGUSR1)
    caught: list[BaseException] = []

    def make() -> None:
        try:
            Control(agent.workdir)
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_wakeup_descriptor_of_somebody_else_stays(agent):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer)
    try:
        ctl = Control(agent.workdir)
        agent.say(gpu_duty=0.5)
        ctl.check()
        assert ctl.gpu_duty == 0.5
        assert signal.set_wakeup_fd(writer) == writer
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def test_a_forked_child_does_not_eat_the_nudges_of_its_parent(agent):
    ctl = Control(agent.workdir)
    agent.say(gpu_duty=0.5)
    pid = os.fork()
    if pid == 0:
        ctl.wait(0)
        os._exit(0)
    os.waitpid(pid, 0)
    ctl.check()
    assert ctl.gpu_duty == 0.5


@pytest.mark.realtime
def test_a_refresh_by_one_thread_ends_the_hold_of_another(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)
    ctl.check()
    thread = threading.Thread(target=ctl.safe_point)
    thread.start()
    while not ctl._reading:
        time.sleep(0.001)
    agent.write({"seq": 2})
    assert ctl.refresh()  # no nudge: the holder sleeps in the system and must be told
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.realtime
def test_a_pause_held_by_two_threads_counts_once(agent):
    ctl = Control(agent.workdir)
    agent.say(pause=True)
    ctl.check()
    threads = [threading.Thread(target=ctl.safe_point) for _ in range(2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while ctl._holding < 2:
        time.sleep(0.001)
    both = time.monotonic()
    time.sleep(0.2)
    lifted = time.monotonic()
    agent.say()
    for thread in threads:
        thread.join(20)
    assert lifted - both <= ctl.paused_s <= time.monotonic() - began


def test_a_relative_workdir_stays_where_it_was_when_the_runner_changes_its_folder(agent, monkeypatch):
    monkeypatch.delenv("OARBANK_WORKDIR", raising=False)
    monkeypatch.chdir(agent.workdir)
    ctl = Control()
    monkeypatch.chdir("/")
    agent.say(gpu_duty=0.5)
    ctl.check()
    ctl.phase("work")
    assert ctl.gpu_duty == 0.5
    assert (agent.workdir / "phase").exists()


def test_a_newer_wakeup_descriptor_is_left_in_place_when_an_older_control_goes(agent):
    before = signal.set_wakeup_fd(-1)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        ctl = Control(agent.workdir)
        signal.set_wakeup_fd(writer)  # an event loop that was started later
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        ctl._nudges._close()
        assert signal.set_wakeup_fd(-1) == writer
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
