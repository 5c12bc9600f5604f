"""The kit's own measure of a runner, beside what the runner says of itself.

For units that stand in on the CPU it is the tick measure of `oarbank_agent_check`: in every tick of at most 5 ms the
busiest thread of the runner's whole tree counts. Beside it stand two figures that say how far the measure can be
trusted on a busy machine: the processor time of all threads together, and how long the runner waited for a processor.

It only reads; `judge` decides. What cannot be read is handed on as a reason, never as a zero.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable

import psutil

from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess
from oarbank_conformkit.evidence import CpuSeen, Wait
from oarbank_conformkit.host import Host
from oarbank_conformkit.runner_process import RunnerProcess
from oarbank_conformkit.shares import TICK_S

WAIT_STEP_S = 0.1
"""How often the waits for a processor are read."""


class RunQueue:
    """How long a runner's most delayed thread waited for a processor, step by step; Linux with schedstat only."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self.known = os.path.exists("/proc/self/schedstat")
        self.steps: list[Wait] = []
        self._pids = pids
        self._at = time.monotonic()
        self._seen = self._read()

    def step(self) -> None:
        """End a step now, if the last one ended WAIT_STEP_S ago or earlier."""
        now = time.monotonic()
        if not self.known or now - self._at < WAIT_STEP_S:
            return
        seen = self._read()
        waited_ns = max((ns - self._seen.get(thread, 0) for thread, ns in seen.items()), default=0)
        self.steps.append(Wait(now, now - self._at, max(waited_ns, 0) / 1e9))
        self._at, self._seen = now, seen

    def waited_s(self) -> float:
        """Give the seconds waited since the beginning; 0 where the system does not say."""
        return sum(step.wait_s for step in self.steps)

    def _read(self) -> dict[str, int]:
        if not self.known:
            return {}
        seen: dict[str, int] = {}
        for pid in self._pids():
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with (
                        contextlib.suppress(OSError, IndexError, ValueError),
                        open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file,
                    ):
                        seen[thread] = int(file.read().split()[1])
        return seen


class CpuMeter:
    """Measures one runner from `start` to `end`; both are called once, and `stop` however it went."""

    def __init__(self, runner: RunnerProcess) -> None:
        """Begin to follow the runner's processes. What cannot be followed shows in the evidence."""
        self._runner = runner
        self._fault: str | None = None
        self._source: CpuThreads | None = None
        self._queue: RunQueue | None = None
        self._start = self._end = 0.0
        self._cpu_s: float | None = None
        try:
            self._tree = ProcessTree(runner.pid, adopted=runner.adopted)
            self._source = CpuThreads(self._tree, TICK_S)
            self._source.start()
        except (NoSuchProcess, UnreadableProcess) as exc:
            self._source = None
            self._fault = str(exc)

    def start(self) -> None:
        """The window begins."""
        self._start = time.monotonic()
        if self._source is not None:
            self._source.sample()
            self._cpu_s = self._processor_s()
            self._queue = RunQueue(self._members)

    def step(self) -> None:
        """To be called often while the window runs: reads the waits when their time has come."""
        if self._queue is not None:
            self._queue.step()

    def held(self) -> float | None:
        """Give the share held so far in the window, for a person who watches."""
        if self._source is None:
            return None
        ticks = [tick for tick in self._source.ticks() if tick.t > self._start]
        length = sum(tick.dt_s for tick in ticks)
        return sum(tick.gain_s for tick in ticks) / length if length else None

    def end(self) -> CpuSeen:
        """The window ends; what was seen in it."""
        self._end = time.monotonic()
        if self._source is None or self._queue is None:
            return CpuSeen(self._start, self._end, unknown=self._fault)
        total_s = None
        if self._cpu_s is not None and (cpu_s := self._processor_s()) is not None:
            total_s = max(cpu_s - self._cpu_s, 0.0)
        sample = self._source.sample()
        return CpuSeen(
            self._start,
            self._end,
            ticks=tuple(self._source.ticks()),
            total_s=total_s,
            waits=tuple(self._queue.steps) if self._queue.known else None,
            unknown=_unread(sample),
            source=self._source.name,
            clock=sample.detail,
            follows_orphans=self._runner.follows_orphans,
        )

    def stop(self) -> None:
        """Let go of the meter's thread and files; again: nothing."""
        if self._source is not None:
            self._source.stop()

    def _members(self) -> list[int]:
        return [member.pid for member in self._tree.members()]

    def _processor_s(self) -> float | None:
        """Processor time of the tree: the living, and those that they or the guard have buried. None: not readable."""
        total = 0.0
        try:
            for pid in self._members():
                with contextlib.suppress(psutil.NoSuchProcess):
                    used = psutil.Process(pid).cpu_times()
                    total += used.user + used.system + used.children_user + used.children_system
            return total + self._runner.buried_s()
        except psutil.Error:
            return None


def gpu_unknown(host: Host) -> str:
    """Say why no GPU time of the runner can be read here."""
    return f"no GPU source of this kit reads the runner's processes on {host.platform}"


def _unread(sample: Sample) -> str | None:
    if sample.share is not None:
        return None
    if not sample.unknown:
        return "the meter gave no reading"
    first = sample.unknown[0]
    return f"pid {first.pid}: {first.reason}"
