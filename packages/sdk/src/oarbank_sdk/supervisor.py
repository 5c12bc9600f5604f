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
from collections.abc import Callable, Iterator, Sequence

from oarbank_sdk.control import Control

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
        self._told_pause = False
        self._terminated = False

    def run(self) -> int:
        """Start the process and follow it to its end; its exit code, or 128 + n when signal n ended it.

        On the main thread only (RuntimeError elsewhere), because that is where nudges arrive. A stop, SIGTERM or
        Ctrl-C ends the process; Ctrl-C is raised again after that. OSError when it cannot be started.
        """
        ctl = Control()
        env = {name: value for name, value in os.environ.items() if name not in _OURS}
        caller = threading.Thread(target=self._call, name="oarbank-supervisor", daemon=True)
        caller.start()
        try:
            with self._terminating(ctl):
                self._tell(ctl)
                self._called(self._grace_s)
                child = subprocess.Popen(self._argv, env=env)
                threading.Thread(target=lambda: (child.wait(), ctl.wake()), daemon=True).start()
                try:
                    self._follow(ctl, child)
                finally:
                    if child.poll() is None:
                        self._end(child)
        finally:
            self._calls.put(None)
            caller.join(self._grace_s)
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
                self._calls.put(lambda: tell(duty))
        if paused != self._told_pause:
            self._told_pause = paused
            if (hold := self._pause) is not None:
                self._calls.put(lambda: hold(paused))

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """`stop()`, SIGTERM, and SIGKILL at the end of the grace; all of it within the grace."""
        until = time.monotonic() + self._grace_s
        if self._stop is not None:
            self._calls.put(self._stop)
            self._called(self._grace_s)
        child.terminate()
        try:
            child.wait(max(until - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def _called(self, limit_s: float) -> None:
        """Wait, at most `limit_s`, until every callback so far has returned."""
        done = threading.Event()
        self._calls.put(done.set)
        done.wait(limit_s)

    def _call(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                call()
            except Exception:
                _log.exception("supervisor: a callback failed; the process runs on")

    @contextlib.contextmanager
    def _terminating(self, ctl: Control) -> Iterator[None]:
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
    return Supervisor(words).run()


if __name__ == "__main__":
    raise SystemExit(main())
