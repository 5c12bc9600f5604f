"""A workload's side: run a long process, and turn its control document into callbacks.

`Supervisor` starts the process, owns the nudge, and calls back when the document's duty or pause changes and before a
stop. The process itself gets no document and needs to know nothing. It is never restarted: whoever started the
supervisor decides that. Callbacks run one after the other on a thread of their own; one that raises is logged and
forgotten, because a broken knob must not take a daemon down.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence

from oarbank_sdk.control import EXIT_STOPPED, Control

__all__ = ["Supervisor"]

STOP_GRACE_S = 20.0  # the manifest's default stop_grace_s
_log = logging.getLogger(__name__)
_OURS = ("OARBANK_WORKDIR", "OARBANK_CONTROL_EVENT")  # what leads to the document; the process gets none


class Supervisor:
    """Run `argv` and call back on what ``$OARBANK_WORKDIR/control.json`` says.

    `gpu_duty(duty)` gets a number from 0.0 to 1.0, or None when no limit is in force: before the process starts if
    there is a limit, so that it never runs without, then on every change; ``Duty(None).set`` fits. `pause(True)` and
    `pause(False)` follow the document's pause. `stop()` is called before the process gets SIGTERM; all of the stop
    takes `stop_grace_s` seconds at most, then the process is killed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        gpu_duty: Callable[[float | None], object] | None = None,
        pause: Callable[[bool], object] | None = None,
        stop: Callable[[], object] | None = None,
        stop_grace_s: float = STOP_GRACE_S,
    ) -> None:
        if isinstance(argv, str) or not argv:
            raise ValueError(f"argv: must be a list of words, the program first; found {argv!r:.80}")
        self._argv = list(argv)
        self._gpu_duty, self._pause, self._stop = gpu_duty, pause, stop
        self._grace_s = stop_grace_s
        self._calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._told_duty: float | None = None
        self._told_pause = self._terminated = self._ended = False

    def run(self) -> int:
        """Start the process and follow it to its end; its exit code, or 128 + n when signal n ended it.

        On the main thread only (RuntimeError elsewhere), because that is where nudges arrive. A stop, SIGTERM or
        Ctrl-C ends the process; Ctrl-C is raised again after that. With a stop in force already nothing is started,
        and 75 comes back. OSError when the program cannot be started; RuntimeError when the first callback hangs.
        """
        ctl = Control()
        self._calls = queue.SimpleQueue()
        self._told_duty, self._told_pause = None, False
        self._terminated = self._ended = False
        if ctl.stop:
            return EXIT_STOPPED
        env = {name: value for name, value in os.environ.items() if name not in _OURS}
        caller = threading.Thread(target=self._call, name="oarbank-supervisor", daemon=True)
        caller.start()
        try:
            with self._terminating(ctl):
                self._tell(ctl)
                if not self._called(self._grace_s):
                    raise RuntimeError(f"gpu_duty: must return within {self._grace_s:g} s; nothing was started")
                child = subprocess.Popen(self._argv, env=env)
                threading.Thread(target=lambda: (child.wait(), ctl.wake()), daemon=True).start()
                try:
                    self._follow(ctl, child)
                finally:
                    if child.poll() is None:
                        self._end(child)
        finally:
            self._ended = True  # what is still in the line is of no use to anybody
            self._calls.put(None)
        return child.returncode if child.returncode >= 0 else 128 - child.returncode

    def _follow(self, ctl: Control, child: subprocess.Popen[bytes]) -> None:
        """Until the process ends or a stop is in force: tell every change."""
        while child.poll() is None and not (ctl.stop or self._terminated):
            seq = ctl.seq
            self._tell(ctl)
            if child.poll() is None and not (ctl.stop or self._terminated):
                ctl.wait(newer_than=seq)

    def _tell(self, ctl: Control) -> None:
        duty, paused = ctl.gpu_duty, ctl.pause
        if duty != self._told_duty:
            self._told_duty = duty
            if (tell := self._gpu_duty) is not None:
                # One that a newer duty has overtaken in the line is not worth a call.
                self._calls.put(lambda: self._told_duty != duty or tell(duty))
        if paused != self._told_pause:
            self._told_pause = paused
            if (hold := self._pause) is not None:
                self._calls.put(lambda: hold(paused))

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """`stop()`, SIGTERM, and SIGKILL at the end of the grace; all of it within the grace."""
        until = time.monotonic() + self._grace_s
        try:
            if self._stop is not None:
                self._calls.put(self._stop)
                self._called(self._grace_s)
            child.terminate()
            child.wait(max(until - time.monotonic(), 0.0))
        except BaseException as fault:  # the grace is over, or a second Ctrl-C: nothing is left behind
            child.kill()
            child.wait()
            if not isinstance(fault, subprocess.TimeoutExpired):
                raise

    def _called(self, limit_s: float) -> bool:
        """Wait, at most `limit_s`, until every callback so far has returned; whether they have."""
        done = threading.Event()
        self._calls.put(done.set)
        return done.wait(limit_s)

    def _call(self) -> None:
        calls = self._calls
        while (call := calls.get()) is not None:
            try:
                if not self._ended:
                    call()
            except Exception:
                _log.exception("supervisor: a callback failed; the process runs on")

    @contextlib.contextmanager
    def _terminating(self, ctl: Control) -> Generator[None]:
        """SIGTERM to this process ends the other one first, rather than leaving it behind."""

        def terminate(*_: object) -> None:
            self._terminated = True
            ctl.wake()

        before = signal.signal(signal.SIGTERM, terminate)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


def main(argv: list[str] | None = None) -> int:
    """``python -m oarbank_sdk.supervisor PROGRAM [ARG...]``: supervise without callbacks, to try it out."""
    words = sys.argv[1:] if argv is None else argv
    if not words:
        print("supervisor: must be given a program to run; found none", file=sys.stderr)
        return 2
    try:
        return Supervisor(words).run()
    except OSError as fault:
        print(f"supervisor: {words[0]}: must be a program; found: {fault.strerror}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
