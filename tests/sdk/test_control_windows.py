"""Control on Windows, with a fake of the two calls: an auto-reset event is one nudge, and stays until it is seen."""

from __future__ import annotations

import ctypes
import json
import sys
import threading
from collections.abc import Callable

import pytest

from oarbank_sdk.control import Control, Stopped

HANDLE = 4711


class Call:
    """A function of a DLL: takes `argtypes` and `restype` like one."""

    def __init__(self, function: Callable[..., int]) -> None:
        self.function = function
        self.argtypes: list[object] = []
        self.restype: object = None

    def __call__(self, *args: int) -> int:
        return self.function(*args)


class Kernel32:
    """One auto-reset event."""

    def __init__(self) -> None:
        self._set = False
        self._change = threading.Condition()
        self.waits: list[int] = []
        self.WaitForSingleObject = Call(self._wait)
        self.SetEvent = Call(self._raise)

    def _wait(self, handle: int, ms: int) -> int:
        assert handle == HANDLE
        self.waits.append(ms)
        with self._change:
            came = self._change.wait_for(lambda: self._set, None if ms == 0xFFFFFFFF else ms / 1000)
            self._set = False
        return 0 if came else 258

    def _raise(self, handle: int) -> int:
        assert handle == HANDLE
        with self._change:
            self._set = True
            self._change.notify()
        return 1


@pytest.fixture
def kernel32(monkeypatch):
    fake = Kernel32()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(ctypes, "WinDLL", lambda *_, **__: fake, raising=False)
    monkeypatch.setenv("OARBANK_CONTROL_EVENT", str(HANDLE))
    return fake


@pytest.fixture
def say(tmp_path, kernel32):
    def write(seq: int, *, nudge: bool = True, **fields) -> None:
        (tmp_path / "control.json").write_text(json.dumps({"seq": seq, **fields}))
        if nudge:
            kernel32.SetEvent(HANDLE)

    return write


def test_two_documents_and_one_nudge_are_one_read(tmp_path, say):
    ctl = Control(tmp_path)
    say(1, nudge=False, gpu_duty=0.9)
    ctl.check()
    assert ctl.seq == -1
    say(2, gpu_duty=0.3)
    ctl.check()
    assert (ctl.seq, ctl.gpu_duty) == (2, 0.3)
    say(3, nudge=False, gpu_duty=0.9)
    ctl.check()
    assert ctl.seq == 2


def test_a_nudge_before_control_is_dropped_and_the_file_read(tmp_path, say):
    say(1, gpu_duty=0.3)
    ctl = Control(tmp_path)
    assert ctl.seq == 1
    say(2, nudge=False)
    ctl.check()
    assert ctl.seq == 1


@pytest.mark.realtime
def test_a_pause_waits_for_the_event_and_a_stop_ends_it(tmp_path, say, kernel32):
    ctl = Control(tmp_path)
    say(1, pause=True)
    timer = threading.Timer(0.05, lambda: say(2, stop=True))
    timer.start()
    with pytest.raises(Stopped):
        ctl.safe_point()
    timer.join()
    assert 0xFFFFFFFF in kernel32.waits  # no polling


@pytest.mark.realtime
def test_wake_ends_a_wait(tmp_path, kernel32):
    ctl = Control(tmp_path)
    timer = threading.Timer(0.05, ctl.wake)
    timer.start()
    assert ctl.wait(60) is False
    timer.join()


def test_a_timed_wait_ends_without_a_nudge(tmp_path, kernel32):
    assert Control(tmp_path).wait(0.01) is False


@pytest.mark.parametrize("told", [None, "", "abc", "-1"])
def test_without_the_event_a_pause_is_refused_by_name(tmp_path, say, monkeypatch, told):
    monkeypatch.delenv("OARBANK_CONTROL_EVENT")
    if told is not None:
        monkeypatch.setenv("OARBANK_CONTROL_EVENT", told)
    say(1, gpu_duty=0.3, pause=True)
    ctl = Control(tmp_path)
    assert ctl.gpu_duty == 0.3
    with pytest.raises(RuntimeError, match="OARBANK_CONTROL_EVENT"):
        ctl.safe_point()
    say(2)
    ctl.check()
    assert ctl.seq == 1  # the first document is all there ever is
    assert ctl.wait(0.01) is False


def test_control_may_be_made_on_any_thread(tmp_path, kernel32):
    made: list[Control] = []
    thread = threading.Thread(target=lambda: made.append(Control(tmp_path)))
    thread.start()
    thread.join()
    assert made


@pytest.mark.realtime
def test_a_check_by_one_thread_does_not_eat_the_nudge_of_another_that_holds(tmp_path, say, kernel32):
    ctl = Control(tmp_path)
    say(1, pause=True)
    ctl.check()
    thread = threading.Thread(target=ctl.safe_point)
    thread.start()
    while not ctl._reading:
        pass
    say(2)
    ctl.check()
    thread.join(20)
    assert not thread.is_alive()


def test_a_handle_that_is_none_is_said_and_not_spun_on(tmp_path, kernel32):
    ctl = Control(tmp_path)
    kernel32.WaitForSingleObject.function = lambda *_: 0xFFFFFFFF
    with pytest.raises(RuntimeError, match="OARBANK_CONTROL_EVENT: must hold the handle"):
        ctl.wait(5)
