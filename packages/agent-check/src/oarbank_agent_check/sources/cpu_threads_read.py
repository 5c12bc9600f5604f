"""Reads the clocks of processes and threads; the CPU source's one file that touches the machine.

Linux: the CPU clock of a process (one system call, ended threads included) says whether anything ran at all; only
then are its threads listed and their `schedstat` read. Elsewhere psutil gives what the system has, and `clock` says
which clock that is. It decides nothing: what cannot be read is handed on as `Unknown` with the reason.

Never run: macOS; psutil's readings are tested on Linux.
Never run: Windows; psutil's readings are tested on Linux.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from oarbank_agent_check.readings import NS_PER_S, ProcessKey, Unknown
from oarbank_agent_check.sources.cpu_threads_parse import (
    ProcessReading,
    parse_schedstat,
    parse_stat_cpu,
    parse_stat_state,
)

MOST_BYTES = 1024
"""Longer than any of the files read here."""

MOST_FILES = 256
"""How many files may stay open (1024 is a usual limit of a process); what is beyond is opened for every reading."""


class ThreadReader(Protocol):
    """Reads all processes of a tree at one moment."""

    clock: str
    """Which clock it reads, for the `detail` of a sample."""

    def read(self, keys: Iterable[ProcessKey], *, born_after: float, watch: bool = False) -> list[ProcessReading]:
        """Read every process; one that started after `born_after` (Unix s) counts whole. Those gone are left out.

        With `watch`, readings also tell how many threads run, where that can be read.
        """

    def forget(self, keys: Iterable[ProcessKey]) -> None:
        """Close the files of processes that have ended."""

    def close(self) -> None:
        """Let go of all open files."""


class ProcThreads:
    """Linux: process clocks, and `schedstat` of each thread or, on kernels without it, `stat` in steps of 10 ms."""

    def __init__(self, *, fine: bool | None = None) -> None:
        here = f"/proc/{os.getpid()}/task/{os.getpid()}"
        self._fine = os.path.exists(f"{here}/schedstat") if fine is None else fine
        self._tick_ns = NS_PER_S // os.sysconf("SC_CLK_TCK")
        self._file = "schedstat" if self._fine else "stat"
        self.clock = f"/proc/PID/task/TID/{self._file}" + ("" if self._fine else f", steps of {self._tick_ns} ns")
        self._processes: dict[ProcessKey, _Process] = {}
        self._kept = 0

    def read(self, keys: Iterable[ProcessKey], *, born_after: float, watch: bool = False) -> list[ProcessReading]:
        readings = [self._read_process(key, whole=key.start >= born_after, watch=watch) for key in keys]
        return [reading for reading in readings if reading is not None]

    def forget(self, keys: Iterable[ProcessKey]) -> None:
        for key in keys:
            process = self._processes.pop(key, _Process(key.pid))
            for thread in list(process.files):
                self._drop(process, thread)

    def close(self) -> None:
        self.forget(list(self._processes))

    def _read_process(self, key: ProcessKey, *, whole: bool, watch: bool) -> ProcessReading | None:
        process = self._processes.get(key)
        if process is None:
            process = self._processes[key] = _Process(key.pid)
        # The total comes before the threads: then it can only lag behind them, and never shows time twice.
        total_ns = _process_clock(key.pid)
        running = self._running(process) if watch else None
        if total_ns is not None and process.total_ns == total_ns:
            return ProcessReading(key, total_ns, None, running=running)
        try:
            threads = self._read_threads(process)
        except (FileNotFoundError, ProcessLookupError):
            self.forget([key])
            # A clock that still answers belongs to a process that lives, behind a /proc that hides it.
            return None if _process_clock(key.pid) is None else _unknown(key, "/proc hides the process (hidepid)")
        except (OSError, ValueError) as fault:
            self.forget([key])
            return _unknown(key, str(fault))
        process.total_ns = total_ns
        return ProcessReading(key, total_ns, threads, whole, running)

    def _read_threads(self, process: _Process) -> dict[int, int]:
        threads: dict[int, int] = {}
        for name in os.listdir(f"/proc/{process.pid}/task"):
            thread = int(name)
            try:
                text = self._text(process, thread, self._file)
            except (FileNotFoundError, ProcessLookupError):  # it ended between the listing and now
                continue
            threads[thread] = parse_schedstat(text) if self._fine else parse_stat_cpu(text) * self._tick_ns
        if process.files.keys() != threads.keys():
            for thread in process.files.keys() - threads.keys():
                self._drop(process, thread)
        return threads

    def _running(self, process: _Process) -> int:
        running = 0
        for thread in list(process.files):
            with suppress(FileNotFoundError, ProcessLookupError):
                running += parse_stat_state(self._text(process, thread, "stat")) == "R"
        return running

    def _text(self, process: _Process, thread: int, name: str) -> bytes:
        kept = process.files.get(thread)
        if kept is not None and name in kept:
            return os.pread(kept[name], MOST_BYTES, 0)
        file = os.open(f"/proc/{process.pid}/task/{thread}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if self._kept < MOST_FILES:
            process.files.setdefault(thread, {})[name] = file
            self._kept += 1
            return os.pread(file, MOST_BYTES, 0)
        try:
            return os.pread(file, MOST_BYTES, 0)
        finally:
            os.close(file)

    def _drop(self, process: _Process, thread: int) -> None:
        for file in process.files.pop(thread).values():
            os.close(file)
            self._kept -= 1


@dataclass(slots=True)
class _Process:
    """What is kept of a process between readings: its last total, and open files by thread and name."""

    pid: int
    total_ns: int | None = None
    files: dict[int, dict[str, int]] = field(default_factory=dict)


class PsutilThreads:
    """Other systems: each thread's time where psutil may see it, else the process as if it were one thread."""

    def __init__(self) -> None:
        self.clock = f"psutil on {sys.platform}: thread times, or process times where those are not readable"

    def read(self, keys: Iterable[ProcessKey], *, born_after: float, watch: bool = False) -> list[ProcessReading]:
        readings = [_psutil_reading(key, whole=key.start >= born_after) for key in keys]
        return [reading for reading in readings if reading is not None]

    def forget(self, keys: Iterable[ProcessKey]) -> None:
        """Nothing is kept for a process."""

    def close(self) -> None:
        """Nothing is kept open."""


def system_reader() -> ProcThreads | PsutilThreads:
    """Give the finest reader that this machine has."""
    return ProcThreads() if sys.platform.startswith("linux") else PsutilThreads()


def _process_clock(pid: int) -> int | None:
    """Read the CPU clock of a whole process, ended threads included; None when it is gone or there is no such clock."""
    # The kernel's own encoding of "CPU clock of that pid" (clock_getcpuclockid of the C library makes the same).
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except (OSError, OverflowError):
        return None


def _psutil_reading(key: ProcessKey, *, whole: bool) -> ProcessReading | None:
    try:
        process = psutil.Process(key.pid)
        try:
            # On macOS these ids are positions, not identities; with access denied there, the total stands in.
            threads = {t.id: round((t.user_time + t.system_time) * NS_PER_S) for t in process.threads()}
        except psutil.AccessDenied:
            times = process.cpu_times()
            threads = {key.pid: round((times.user + times.system) * NS_PER_S)}
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return _unknown(key, "not permitted for this user")
    return ProcessReading(key, None, threads, whole)


def _unknown(key: ProcessKey, why: str) -> ProcessReading:
    reason = f"the CPU time of pid {key.pid} could not be read: {why[:80]}. Run as the owner of the process."
    return ProcessReading(key, None, None, unknown=Unknown(reason))
