"""What the operating system says about single processes: who lives, since when, and who its children are.

The one file besides the sources that touches processes. Linux answers from /proc, a few small reads for each process
and never a scan of the machine; elsewhere psutil answers, which must scan and is therefore asked less often.
It decides nothing about belonging: `tree` does.

Never run: macOS; psutil's answers are tested on Linux.
Never run: Windows; psutil's answers are tested on Linux.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

import psutil

from oarbank_agent_check.readings import ProcessKey, Unknown

MOST_BYTES = 65536
"""What is read of one file: the pids of some 8000 children; those beyond wait until the first ones have ended."""

START_RESOLUTION_S = 0.01
"""How coarse a start time is: Linux counts it in clock ticks of 10 ms."""


class ProcessTable(Protocol):
    """The questions that a tree has about processes."""

    pause_s: float
    """How long to wait between two rounds of questions, since they cost something."""

    def identify(self, pid: int) -> ProcessKey | Unknown | None:
        """Say which process has this pid: None when there is none, or when it has ended and only awaits its parent."""

    def children(self, pid: int) -> Sequence[int]:
        """Give the pids of its children; empty when it is gone. Some may be missed, and be there the next time."""

    def newest(self) -> object:
        """Give something that differs after any process or thread was started, or None where nothing tells."""

    def begin_round(self) -> None:
        """Forget what was cached for the last round of questions."""


def parse_stat(text: bytes) -> tuple[str, int, int]:
    """Read (state, number of threads, start in clock ticks since boot) out of a `/proc/PID/stat` line."""
    # The name is whatever the program likes, brackets and blanks included: only the last bracket ends it.
    fields = text[text.rindex(b")") + 2 :].split(None, 20)
    return fields[0].decode(), int(fields[17]), int(fields[19])


class ProcTable:
    """Linux: /proc/PID/stat, and /proc/PID/task/TID/children where the kernel was built with it."""

    pause_s = 0.05  # `newest` tells of most starts much sooner

    def __init__(self) -> None:
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        # Read once: the wall clock may be set later, and a process must keep its identity.
        self._boot_s = time.time() - _since_boot_s()
        try:
            self._load = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._load = -1

    def identify(self, pid: int) -> ProcessKey | Unknown | None:
        text = _read(f"/proc/{pid}/stat")
        if text is None:
            return _hidden(pid)
        state, threads, start = parse_stat(text)
        # A first thread that ended is a zombie while others run on; the whole process is over with the last one.
        if state in "ZX" and threads < 2:
            return None
        return ProcessKey(pid, round(self._boot_s + start * self._tick_s, 3))

    def children(self, pid: int) -> Sequence[int]:
        found: list[int] = []
        try:
            threads = os.listdir(f"/proc/{pid}/task")
        except OSError:
            return found
        for thread in threads:
            text = _read(f"/proc/{pid}/task/{thread}/children")
            if text:
                found.extend(map(int, text.split()))
        return found

    def newest(self) -> object:
        """Give the pid handed out last, the end of /proc/loadavg: unchanged means no new process and no new thread."""
        try:
            return os.pread(self._load, 128, 0).rsplit(None, 1)[-1]
        except (OSError, IndexError):
            return None

    def begin_round(self) -> None:
        """Keep nothing between rounds."""

    def __del__(self) -> None:
        if self._load >= 0:
            os.close(self._load)


class PsutilTable:
    """Any system psutil knows: children come from one scan of all processes for each round, so rounds are rare."""

    pause_s = 0.25

    def __init__(self) -> None:
        self._children: dict[int, list[int]] | None = None

    def identify(self, pid: int) -> ProcessKey | Unknown | None:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            return ProcessKey(pid, round(process.create_time(), 3))
        except psutil.NoSuchProcess:
            return None
        except psutil.AccessDenied:
            return Unknown(f"the start time of pid {pid} is not readable for this user. Run as its owner.")

    def children(self, pid: int) -> Sequence[int]:
        if self._children is None:
            self._children = _children_of_all(psutil.process_iter(["ppid"]))
        return self._children.get(pid, [])

    def newest(self) -> object:
        return None

    def begin_round(self) -> None:
        self._children = None


class NoProcesses(OSError):
    """This system shows no processes at all."""


def system_table(proc: str = "/proc") -> ProcTable | PsutilTable:
    """Give the cheapest table that this machine has; raises NoProcesses on a Linux without /proc."""
    if not sys.platform.startswith("linux"):
        return PsutilTable()
    if not os.path.exists(f"{proc}/self/stat"):
        raise NoProcesses(f"{proc}: must be mounted, or no process can be seen; found none. Mount it.")
    return ProcTable() if os.path.exists(f"{proc}/thread-self/children") else PsutilTable()


def _children_of_all(processes: Iterable[psutil.Process]) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.info["ppid"], []).append(process.pid)  # type: ignore[attr-defined]
    return children


def _since_boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


def _read(path: str) -> bytes | None:
    # Plain descriptors cost a quarter of what open() does, and this is asked many times a second.
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(file, MOST_BYTES)
    except OSError:  # it ended in between
        return None
    finally:
        os.close(file)


def _hidden(pid: int) -> Unknown | None:
    """Tell a process that is gone from one that /proc hides (hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return Unknown(f"/proc/{pid} is hidden from this user (hidepid). Run as the owner of the process.")
    # It lives and is ours, or it was being born or buried between the two questions: the next round will tell.
    return Unknown(f"/proc/{pid} could not be read although the process lives. Check that /proc is mounted.")
