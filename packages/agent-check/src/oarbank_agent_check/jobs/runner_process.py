"""Start a runner as the agent starts it, nudge it, and end it with everything that came from it.

The one file that starts a runner. It gets its own session, SIGUSR1 ignored from before its first instruction, an empty
stdin, the environment it is given and nothing else. Between its starter, this process, and the runner stands
`guard.py`, which ends all of the runner's processes however the starter ends. What the runner prints is drained with
bounded memory.

It must never judge: how the runner ended is handed on as a fact. POSIX only; elsewhere starting is a `HostFault`.

Never run: macOS; tested on Linux.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import psutil

from oarbank_agent_check.jobs.faults import HostFault

STDOUT_TAIL = 1 << 20
"""Bytes kept of what a runner prints: enough for any doctor's line."""

STDERR_TAIL = 2000
"""Bytes kept of its stderr, as the agent does."""

_GUARD_LIMIT_S = 30.0  # a guard that does not answer by then is broken, on any machine


@dataclass(frozen=True, slots=True)
class Ended:
    """How the runner process ended: `code` is its exit status, or the negative signal; `at` is monotonic."""

    code: int
    at: float


class StartRefused(Exception):
    """The program could not be executed; the text is the system's reason."""


class RunnerProcess:
    """A running runner. A context manager: leaving it, however, ends every process that came from it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, *, scratch: Path) -> None:
        """Start `argv` in `cwd`. Raises `StartRefused` for the module's fault and `HostFault` for ours.

        `scratch` is what the guard removes when its starter is no longer there to do it.
        """
        if os.name != "posix":
            raise HostFault("start: a runner is started on Linux or macOS; found Windows. Use another machine.")
        self._ended: Ended | None = None
        self._gone = False
        self._rest = b""
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        try:
            self._guard = _start_guard(out, err)
        except OSError as exc:
            os.close(self._out)
            os.close(self._err)
            raise HostFault(f"start: a process must start beside the runner; {exc}. Free some resources.") from None
        finally:
            os.close(out)
            os.close(err)
        self._drain = _Drain({self._out: STDOUT_TAIL, self._err: STDERR_TAIL})
        order = {"argv": list(argv), "env": dict(env), "cwd": str(cwd), "scratch": str(scratch)}
        try:
            self._tell({**order, "stdout": out, "stderr": err})
            self.pid, self.follows_orphans = self._started()
        except BaseException:
            self.close()
            raise

    # ---- what its starter asks ------------------------------------------------------------------------

    def wait(self, timeout_s: float) -> Ended | None:
        """Wait at most `timeout_s` for the runner process to end; how it ended, once it has."""
        if self._ended is None:
            self._ended_event(max(timeout_s, 0.0))
        return self._ended

    def nudge(self) -> None:
        """Send SIGUSR1 to the runner process alone; nothing when it has ended."""
        if self.wait(0.0) is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGUSR1)

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to every process that came from the runner and lives, detached ones included where known."""
        for pid in _below(self._guard.pid, recursive=True):
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def adopted(self) -> list[int]:
        """Give the pids of detached processes that the guard took over; empty where orphans cannot be followed."""
        try:
            with open(f"/proc/{self._guard.pid}/task/{self._guard.pid}/children", "rb") as file:
                return [pid for pid in map(int, file.read().split()) if pid != self.pid]
        except OSError:
            return [pid for pid in _below(self._guard.pid, recursive=False) if pid != self.pid]

    def buried_s(self) -> float:
        """Give the processor time, in seconds, of detached processes that have ended. Raises psutil.Error."""
        used = psutil.Process(self._guard.pid).cpu_times()
        return used.children_user + used.children_system

    def stdout_tail(self) -> bytes:
        """Give the last MiB it printed."""
        return self._drain.tail(self._out)

    def stderr_tail(self) -> str:
        """Give the last 2000 bytes of its stderr, as text."""
        return self._drain.tail(self._err).decode("utf-8", errors="replace")

    def close(self) -> None:
        """End every process that came from the runner and wait until they are gone; again: nothing."""
        if self._gone:
            return
        self._gone = True
        left = self._end_all()
        self._guard.wait()
        for pipe in (self._guard.stdin, self._guard.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._drain.close()
        if left:
            raise HostFault(f"stop: {left} of the runner's processes must end; SIGKILL did not. Look at them with ps.")

    def __enter__(self) -> RunnerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ---- the talk with the guard ------------------------------------------------------------------------

    def _tell(self, line: Mapping[str, object]) -> None:
        try:
            os.write(_fd(self._guard.stdin), (json.dumps(line) + "\n").encode())
        except OSError:
            raise self._broken("it takes no orders") from None

    def _started(self) -> tuple[int, bool]:
        event = self._event(_GUARD_LIMIT_S)
        if event is None:
            raise self._broken(f"no word from it in {_GUARD_LIMIT_S:.0f} s")
        if event["event"] == "failed":
            raise StartRefused(str(event["reason"]))
        return int(event["pid"]), bool(event["orphans"])

    def _ended_event(self, timeout_s: float) -> None:
        event = self._event(timeout_s)
        if event is not None and event["event"] == "ended":
            self._ended = Ended(int(event["code"]), float(event["at"]))

    def _event(self, timeout_s: float) -> dict | None:
        """The guard's next line, or None after `timeout_s`."""
        give_up = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select([_fd(self._guard.stdout)], [], [], max(give_up - time.monotonic(), 0.0))
            if not ready:
                return None
            chunk = os.read(_fd(self._guard.stdout), 65536)
            if not chunk:
                raise self._broken(f"it ended with exit code {self._guard.wait()}")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        event = json.loads(line)
        if event["event"] == "broken":
            raise self._broken(event["reason"])
        return event

    def _end_all(self) -> int:
        """Have the guard end everything; how many processes would not go."""
        followed = getattr(self, "follows_orphans", False)
        others = [] if followed else _below(self._guard.pid, recursive=True)
        try:
            self._tell({"kill": others})
            while (event := self._event(_GUARD_LIMIT_S)) is not None:
                if event["event"] == "ended":
                    self._ended = Ended(int(event["code"]), float(event["at"]))
                elif event["event"] == "gone":
                    return int(event["left"])
        except HostFault:
            if hasattr(self, "pid"):  # the guard is gone; its death has killed the runner on Linux, elsewhere this does
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
        return 0

    def _broken(self, why: str) -> HostFault:
        return HostFault(f"guard: it must answer; {why}. This is not the runner's doing.")


def _start_guard(out: int, err: int) -> subprocess.Popen[bytes]:
    guard = Path(__file__).with_name("guard.py")
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(guard)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        pass_fds=(out, err),
        start_new_session=True,  # Ctrl-C is for whoever started it
    )


def _fd(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()


def _below(pid: int, *, recursive: bool) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=recursive)]
    except psutil.Error:
        return []


class _Drain:
    """Read pipes until they close and keep only their ends: a runner must never block on, or fill, its starter."""

    def __init__(self, keep: Mapping[int, int]) -> None:
        self._keep = dict(keep)
        self._tails = {fd: bytearray() for fd in keep}
        self._stop, self._stopped = os.pipe()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="oarbank-drain", daemon=True)
        self._thread.start()

    def tail(self, fd: int) -> bytes:
        with self._lock:
            return bytes(self._tails[fd])

    def close(self) -> None:
        """Read what is still there, then close; nobody is left who could write."""
        os.close(self._stopped)
        self._thread.join()
        for fd in (*self._keep, self._stop):
            os.close(fd)

    def _run(self) -> None:
        waiting = {*self._keep, self._stop}
        while waiting - {self._stop}:
            ready, _, _ = select.select(list(waiting), [], [])
            readable = [fd for fd in ready if fd != self._stop]
            if not readable:
                return
            for fd in readable:
                chunk = os.read(fd, 65536)
                if not chunk:
                    waiting.discard(fd)
                with self._lock:
                    tail = self._tails[fd]
                    tail += chunk
                    del tail[: -self._keep[fd]]
