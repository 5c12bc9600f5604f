"""The runner's side of its control document: nudges, safe points, pause, stop, phase.

An agent steers a runner through one small file, ``<workdir>/control.json``. It replaces the file and then nudges
the runner: SIGUSR1 on POSIX, an event handle on Windows. `Control` reads the file when it is made and then only
after a nudge; nothing here polls. A document is the whole state, and one that cannot be read changes nothing.

This file works alone, copied into a runner: it needs the standard library and imports nothing of ours. The
document's schema is runner-control-1.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import re
import select
import signal
import sys
import threading
import time
import weakref
from typing import Any

__all__ = ["Control", "Stopped", "replace_text"]

EXIT_STOPPED = 75  # EX_TEMPFAIL: transient, nobody's fault
_REPLACE_RETRY_S = 2.0  # a reader on Windows may hold the old file for a moment
_REASON = re.compile(r"[a-z0-9][a-z0-9_-]*/[a-z0-9][a-z0-9_.-]*\Z")
_WAKE = 0  # in the pipe: look up, nobody nudged


class Stopped(Exception):
    """A stop is in force: put nothing new on the device, then return `Control.acknowledge_stop()`."""


class Control:
    """The control document of this process, applied at each nudge.

    Make it first, on the main thread (POSIX; anywhere else is a RuntimeError), so that no nudge is missed; every
    method may then be called from any thread. `workdir` defaults to ``$OARBANK_WORKDIR``, else the current folder.

    Before any document: `seq` -1 and nothing in force. `gpu_duty` is None (no limit) or 0.0 to 1.0; `threads` is
    None or at least 1; `paused_s` are the seconds held in pauses. `gpu_duty_fault` says why a document's duty could
    not be used, else None: the duty is then 0 until a usable one comes, for a broken signal never loosens.
    """

    def __init__(self, workdir: str | os.PathLike[str] | None = None) -> None:
        self.workdir = os.fspath(workdir if workdir is not None else os.environ.get("OARBANK_WORKDIR", "."))
        self.seq = -1
        self.stop = self.pause = self.checkpoint = False
        self.threads: int | None = None
        self.gpu_duty: float | None = None
        self.gpu_duty_fault: str | None = None
        self.paused_s = 0.0
        self._folder = os.path.abspath(self.workdir)  # a runner may change its own folder later
        self._path = os.path.join(self._folder, "control.json")
        self._change = threading.Condition()  # guards the document, the reader's role and the pause clock
        self._waked = 0
        self._reading = False  # one waiting thread reads nudges, the others wait for it
        self._holding = 0
        self._held_since = 0.0
        # The handler first, then the file: a change after the read leaves a nudge behind.
        self._nudges = _nudges()
        self._nudges.take(0)
        self.refresh()
        if hasattr(os, "register_at_fork"):
            weak = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: (ctl := weak()) and ctl._after_fork())

    @property
    def checkpoint_requested(self) -> bool:
        """True when the stop in force asks for a checkpoint first."""
        return self.stop and self.checkpoint

    def refresh(self) -> bool:
        """Read the file; True when it held a newer document, which is then in force."""
        with self._change:
            state = _read(self._path, self.seq)
            if state is not None:
                self.__dict__.update(state)
                self._change.notify_all()
                if self._reading:
                    self._nudges.wake()  # the reader sleeps in the system, where no notify reaches it
            self._nudges.applying = False
            return state is not None

    def check(self) -> None:
        """Apply a nudged change, without blocking. Raises `Stopped` while a stop is in force."""
        if self._nudges.pending():
            with self._change:
                if not self._reading:  # else the waiting thread takes it
                    self._nudges.take(0)
                self.refresh()
        if self.stop:
            raise Stopped(f"stop in force (control.json, seq {self.seq})")

    def safe_point(self) -> None:
        """`check()`, then hold, at no cost in CPU, until a pause in force is lifted. Raises `Stopped`."""
        self.check()
        if not self.pause:
            return
        with self._change:
            self._holding += 1
            if self._holding == 1:
                self._held_since = time.monotonic()
        try:
            while (seq := self.seq) is not None and self.pause and not self.stop:  # seq first: no change is missed
                self.wait(newer_than=seq)
        finally:
            with self._change:  # every thread that leaves moves the clock on, so none counts twice
                self._holding -= 1
                since, self._held_since = self._held_since, time.monotonic()
                self.paused_s += self._held_since - since
        self.check()

    def wait(self, timeout_s: float | None = None, *, newer_than: int | None = None) -> bool:
        """Block until a newer document is applied (True), or for `timeout_s` seconds (False).

        Newer than the one in force at the call, or than seq `newer_than`: the one that the caller acted on. A
        `wake()`, also an earlier one, and a signal that the program handles end it early (False).
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._change:
            seq, waked = self.seq if newer_than is None else newer_than, self._waked
            while self.seq == seq and self._waked == waked:
                left = None if deadline is None else min(deadline - time.monotonic(), 3600.0)
                if left is not None and left <= 0:
                    break
                if self._reading:
                    self._change.wait(left)
                elif self._read_nudge(left):
                    break
            return self.seq != seq

    def wake(self) -> None:
        """Make `wait()` return early in every thread that is in it."""
        with self._change:
            self._waked += 1
            self._change.notify_all()
        self._nudges.wake()

    def phase(self, name: str) -> None:
        """Say what the runner is doing, in one line: ``<workdir>/phase`` (the agent shows 40 characters)."""
        if "\n" in name or "\r" in name:
            raise ValueError(f"phase: must be one line; found {name[:80]!r}")
        replace_text(os.path.join(self._folder, "phase"), name + "\n")

    def acknowledge_stop(self, reason: str | None = None) -> int:
        """Write failure.json (fault transient) and return 75, the exit status of a runner that was stopped.

        `reason` is ``<module>/<code>``; by default ``$OARBANK_MODULE/stopped``.
        """
        reason = reason or f"{os.environ.get('OARBANK_MODULE', 'module')}/stopped"
        if not _REASON.match(reason) or len(reason) > 80:
            reason = "module/stopped"
        failure = {"reason": reason, "detail": f"stopped by control.json, seq {self.seq}", "fault": "transient"}
        replace_text(os.path.join(self._folder, "failure.json"), json.dumps(failure) + "\n")
        return EXIT_STOPPED

    def _read_nudge(self, timeout_s: float | None) -> bool:
        """As the one reader, wait for a nudge and apply it. True when woken for another reason.

        Called with `_change` held, and lets go of it while it waits.
        """
        self._reading = True
        try:
            self._change.release()
            try:
                nudged, woken = self._nudges.take(timeout_s)
            finally:
                self._change.acquire()
        finally:
            self._reading = False
            self._change.notify_all()
        if nudged:
            self.refresh()
        return woken

    def _after_fork(self) -> None:
        """In the child: whoever held the lock at the fork is not here to let go of it."""
        self._change = threading.Condition()
        self._reading = False
        self._holding = 0
        if isinstance(self._nudges, _PipeNudges):
            self._nudges.after_fork()


def replace_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` (UTF-8) to `path` so that a reader sees the old content or the new, never a part.

    A refused replace is tried again for 2 s: on Windows a reader may hold the file. Raises OSError after that.
    """
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.{os.getpid()}-{threading.get_ident()}")
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        give_up = time.monotonic() + _REPLACE_RETRY_S
        while True:
            try:
                os.replace(beside, path)
                return
            except PermissionError:
                if time.monotonic() >= give_up:
                    raise
                time.sleep(0.01)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


# ---- the document: bytes in, state or None out --------------------------------------------------


def _read(path: str, applied_seq: int) -> dict[str, Any] | None:
    """The state that the file puts in force, or None: not there, not readable, not newer."""
    try:
        with open(path, "rb") as file:
            return _state(file.read(), applied_seq)
    except (OSError, MemoryError):
        return None


def _state(data: bytes, applied_seq: int) -> dict[str, Any] | None:
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=int)  # int refuses NaN
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    seq = _integer(document.get("seq"))
    if seq is None or seq <= applied_seq:
        return None
    duty, fault = _duty(document.get("gpu_duty"))
    threads = document.get("threads")
    if threads is not None:
        threads = max(_integer(threads) or 1, 1)  # unusable: the one limit that still makes progress
    flags = {name: document.get(name) is True for name in ("stop", "pause", "checkpoint")}
    return {"seq": seq, "threads": threads, "gpu_duty": duty, "gpu_duty_fault": fault, **flags}


def _integer(value: Any) -> int | None:
    """3 and 3.0 are the integer 3; true, "3", 1.5, 1e400 and null are none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _duty(value: Any) -> tuple[float | None, str | None]:
    """The duty in force, and why the document's own could not be used. A broken one is 0, never a looser one."""
    if value is None:
        return None, None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:  # inf, nan: no number
        return 0.0, f"gpu_duty: must be a number from 0 to 1; found {str(value)[:40]!r}. Held at 0 until one comes."
    return float(min(max(value, 0), 1)) + 0.0, None  # + 0.0: no -0.0


# ---- the nudge: the only part that differs between systems -----------------------------------------


class _PipeNudges:
    """POSIX: SIGUSR1 becomes a byte in a pipe, so that a wait is woken wherever the signal lands.

    Two writers: the interpreter's wakeup descriptor works while the main thread is inside a C call, the Python
    handler works when that descriptor belongs to somebody else (an event loop).
    """

    _wakeup_fd = -1  # ours in this process, so that a later Control may replace it

    def __init__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("Control: must be made on the main thread, which alone may handle SIGUSR1")
        self._nudge = int(signal.SIGUSR1)
        self._raised = self.applying = False  # applying: a nudge is taken, its document not in force yet
        self._open()
        signal.signal(signal.SIGUSR1, self._on_signal)
        atexit.register(signal.signal, signal.SIGUSR1, signal.SIG_IGN)  # a late nudge must not kill a finished runner

    def _open(self) -> None:
        self._main = threading.get_ident()
        self._reader, self._writer = os.pipe()
        self._close = weakref.finalize(self, _close_pipe, self._reader, self._writer)
        self._close.atexit = False
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        found = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if found not in (-1, _PipeNudges._wakeup_fd):
            signal.set_wakeup_fd(found)  # somebody's event loop: the handler alone will do
        else:
            _PipeNudges._wakeup_fd = self._writer

    def after_fork(self) -> None:
        """In the child: a pipe of its own. A nudge is for the runner process, and the child must not eat it."""
        self._close.detach()
        os.close(self._reader)
        os.close(self._writer)
        self._open()

    def _on_signal(self, *_: object) -> None:
        self._put(self._nudge)
        self._raised = True

    def _put(self, byte: int) -> None:
        with contextlib.suppress(BlockingIOError):  # full: something is pending already
            os.write(self._writer, bytes([byte]))

    def wake(self) -> None:
        self._put(_WAKE)

    def pending(self) -> bool:
        """True when a nudge waits. On the main thread the handler has run by now, so its flag answers."""
        return self._raised or self.applying or (threading.get_ident() != self._main and _readable(self._reader, 0))

    def take(self, timeout_s: float | None) -> tuple[bool, bool]:
        """Wait for bytes and empty the pipe: (a nudge came, something else came)."""
        self._raised = False
        if not _readable(self._reader, timeout_s):
            return False, False
        self._raised, self.applying, seen = False, True, b""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self._reader, 4096):
                seen += chunk
        self.applying = self._nudge in seen
        return self.applying, any(byte != self._nudge for byte in seen)


def _readable(fd: int, timeout_s: float | None) -> bool:
    # select counts microseconds where poll counts milliseconds. The descriptor is low: Control is made first.
    return bool(select.select([fd], [], [], timeout_s)[0])


def _close_pipe(reader: int, writer: int) -> None:
    if _PipeNudges._wakeup_fd == writer:
        try:
            found = signal.set_wakeup_fd(-1)
        except ValueError:  # not on the main thread: signals may still be written there, so it stays open
            return
        if found != writer:
            signal.set_wakeup_fd(found)  # somebody's, who came after us
        _PipeNudges._wakeup_fd = -1
    os.close(reader)
    os.close(writer)


class _EventNudges:
    """Windows: an auto-reset event that the agent sets; its handle is inherited, and told in decimal.

    Without a handle the first document is all there ever is. `kernel32` needs WaitForSingleObject and SetEvent.
    Never run: Windows; tested with a fake of the two calls.
    """

    _SIGNALLED, _FAILED, _FOREVER = 0, 0xFFFFFFFF, 0xFFFFFFFF

    def __init__(self, handle: int | None, kernel32: Any) -> None:
        self._handle, self._kernel32 = handle, kernel32
        self._seen = self.applying = False  # asking resets the event, so what was seen is kept

    def _wait(self, ms: int) -> bool:
        answer = self._SIGNALLED if self._seen else self._kernel32.WaitForSingleObject(self._handle, ms)
        if answer == self._FAILED:
            raise RuntimeError(f"{_EVENT}: must hold the handle of an event; found {self._handle}")
        self._seen = answer == self._SIGNALLED
        return self._seen

    def wake(self) -> None:
        if self._handle is not None:
            self._kernel32.SetEvent(self._handle)  # the waiter takes it for a nudge: one read too many, no harm

    def pending(self) -> bool:
        return self._handle is not None and (self.applying or self._wait(0))

    def take(self, timeout_s: float | None) -> tuple[bool, bool]:
        if self._handle is None:
            if timeout_s is None:
                raise RuntimeError(f"{_EVENT}: must hold an event handle, or this pause never ends; found none")
            time.sleep(timeout_s)
            return False, False
        came = self._wait(self._FOREVER if timeout_s is None else min(math.ceil(timeout_s * 1000), 2**31))
        self._seen, self.applying = False, came
        return came, came


_EVENT = "OARBANK_CONTROL_EVENT"


def _nudges() -> _PipeNudges | _EventNudges:
    if sys.platform != "win32":
        return _PipeNudges()
    import ctypes  # here: nobody else pays for it

    kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)  # pyrefly: ignore[missing-attribute]
    kernel32.WaitForSingleObject.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    kernel32.WaitForSingleObject.restype = ctypes.c_uint32
    kernel32.SetEvent.argtypes = [ctypes.c_void_p]
    told = os.environ.get(_EVENT, "")
    return _EventNudges(int(told) if told.isdecimal() else None, kernel32)
