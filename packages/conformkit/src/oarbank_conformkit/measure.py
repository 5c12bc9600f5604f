"""The kit's own measure of a runner, beside what the runner says of itself.

For units that stand in on the CPU it is the tick measure of `oarbank_agent_check`: in every tick of at most 5 ms the
busiest thread of the runner's whole tree counts. Beside it stand two figures that say how far the measure can be
trusted on a busy machine: the processor time of all threads together, and how long the runner waited for a processor.

Wherever a GPU source of `oarbank_agent_check` reads, the GPU time of the same tree is read too, whatever the runner
says of its units: one that says `cpu` while a child uses the GPU is seen.

It only reads; `judge` decides. What cannot be read is handed on as a reason, never as a zero.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable

import psutil

from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.jobs.runner_process import RunnerProcess
from oarbank_agent_check.readings import ProcessKey, Sample, Unknown
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.gpu import UnknownReader, readers
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess
from oarbank_conformkit.evidence import CpuSeen, GpuSeen, GpuTick, Wait
from oarbank_conformkit.shares import GPU_TICK_S, TICK_S

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
    """Measures one runner in windows, each from `start` to `end`; `stop` is called however it went."""

    def __init__(self, runner: RunnerProcess) -> None:
        """Begin to follow the runner's processes. What cannot be followed shows in the evidence."""
        self._runner = runner
        self._fault: str | None = None
        self._source: CpuThreads | None = None
        self._queue: RunQueue | None = None
        self._start = self._end = 0.0
        self._cpu_s: float | None = None
        self._tree: ProcessTree | None = None
        try:
            self._tree = ProcessTree(runner.pid, adopted=runner.adopted)
            self._source = CpuThreads(self._tree, TICK_S)
            self._source.start()
            self._queue = RunQueue(self._members)
        except (NoSuchProcess, UnreadableProcess) as exc:
            self._source = None
            self._fault = str(exc)

    def start(self) -> None:
        """A window begins."""
        self._start = time.monotonic()
        if self._source is not None:
            self._source.sample()
            self._cpu_s = processor_s(self._members(), self._runner)

    def step(self) -> None:
        """To be called often while the window runs: reads the waits when their time has come."""
        if self._queue is not None:
            self._queue.step()

    def gained_s(self, since: float) -> float | None:
        """Give the seconds held since a moment; None where they cannot be read."""
        if self._source is None:
            return None
        return sum(tick.gain_s for tick in self._source.ticks() if tick.t > since)

    def held(self) -> float | None:
        """Give the share held so far in the window, for a person who watches."""
        if self._source is None:
            return None
        ticks = [tick for tick in self._source.ticks() if tick.t > self._start]
        length = sum(tick.dt_s for tick in ticks)
        return sum(tick.gain_s for tick in ticks) / length if length else None

    def end(self) -> CpuSeen:
        """A window ends; what was seen in it, with all ticks and waits since the meter was made."""
        self._end = time.monotonic()
        if self._source is None or self._queue is None:
            return CpuSeen(self._start, self._end, unknown=self._fault)
        total_s = None
        if self._cpu_s is not None and (cpu_s := processor_s(self._members(), self._runner)) is not None:
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

    def followed(self) -> Followed | None:
        """Give the tree that it follows, for another meter; None when it could not."""
        return None if self._source is None or self._tree is None else Followed(self._tree)

    def _members(self) -> list[int]:
        return [] if self._tree is None else [member.pid for member in self._tree.members()]


class Followed:
    """A tree that somebody else keeps up to date: asked a second time, it does not look at the machine again."""

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree

    def refresh(self) -> tuple[ProcessKey, ...]:
        """Give the living members as of its keeper's last look."""
        return self._tree.members()

    def unreadable(self) -> dict[int, Unknown]:
        """Give the members that cannot be identified."""
        return self._tree.unreadable()


class NoGpu(Exception):
    """No GPU source reads here; the text is the reason."""


class GpuCounters:
    """Reads the GPU time of a tree every GPU_TICK_S, from the moment it is made. Raises `NoGpu`."""

    def __init__(self, followed: Followed) -> None:
        try:
            self._meter = GpuMeter(followed, readers())
        except UnknownReader as exc:
            raise NoGpu(str(exc)) from None
        if (hindrance := self._meter.hindrance()) is not None:
            self._meter.stop()
            raise NoGpu(f"no GPU source reads here: {hindrance.reason}")
        self._ticks: list[GpuTick] = []
        self._unknown: str | None = None
        self._clock: str | None = None
        self._start = time.monotonic()
        self._meter.start()
        self._source = self._meter.name
        self._at = time.monotonic()

    def start(self) -> None:
        """A window begins."""
        self._read()
        self._start = time.monotonic()

    def step(self) -> None:
        """To be called often: reads the counters when their time has come."""
        if time.monotonic() - self._at >= GPU_TICK_S / 2:  # whoever calls has steps of his own
            self._read()

    def gained_s(self, since: float) -> float | None:
        """Give the seconds held since a moment; None when any of it could not be read."""
        gains = [tick.gain_s for tick in self._ticks if tick.t > since]
        return None if None in gains else sum(gain for gain in gains if gain is not None)

    def held(self) -> float | None:
        """Give the share held so far in the window."""
        known = [(tick.gain_s, tick.dt_s) for tick in self._ticks if tick.t > self._start and tick.gain_s is not None]
        length = sum(dt_s for _, dt_s in known)
        return sum(gain_s for gain_s, _ in known) / length if length else None

    def end(self) -> GpuSeen:
        """A window ends; what was seen in it, with all ticks since the counters were first read."""
        self._read()
        end = time.monotonic()
        return GpuSeen(self._start, end, tuple(self._ticks), self._unknown, self._source, self._clock)

    def stop(self) -> None:
        """Let go of the readers; again: nothing."""
        self._meter.stop()

    def _read(self) -> None:
        try:
            sample = self._meter.sample()
        except ValueError:  # no time has passed since the last one
            return
        self._at = time.monotonic()
        window_s, low, high = sample.window_s, sample.low, sample.high
        bounds = (None if share is None else share * window_s for share in (low, high))
        self._ticks.append(GpuTick(self._at, window_s, sample.busy_s, *bounds))
        self._source, self._clock = sample.source, sample.detail
        if sample.share is None:
            self._unknown = _unread(sample)


class Measure:
    """All that the kit measures of one runner: its CPU time, and its GPU time where that can be read."""

    def __init__(self, runner: RunnerProcess) -> None:
        self._cpu = CpuMeter(runner)
        self._gpu: GpuCounters | None = None
        self._no_gpu: str | None = "the runner's processes could not be followed"
        try:
            if (followed := self._cpu.followed()) is not None:
                self._gpu, self._no_gpu = GpuCounters(followed), None
        except NoGpu as exc:
            self._no_gpu = str(exc)
        except BaseException:
            self._cpu.stop()
            raise

    def start(self) -> None:
        """A window begins."""
        self._cpu.start()
        if self._gpu is not None:
            self._gpu.start()

    def step(self) -> None:
        """To be called often, before the window too."""
        self._cpu.step()
        if self._gpu is not None:
            self._gpu.step()

    def held(self) -> float | None:
        """Give the larger of the shares held so far, for a person who watches."""
        shares = [self._cpu.held(), None if self._gpu is None else self._gpu.held()]
        return max((share for share in shares if share is not None), default=None)

    def gained_s(self, since: float) -> dict[str, float]:
        """Give the seconds held since a moment, by device; a device that cannot be read is not in it."""
        gained = {"cpu": self._cpu.gained_s(since), "gpu": None if self._gpu is None else self._gpu.gained_s(since)}
        return {device: seconds for device, seconds in gained.items() if seconds is not None}

    def end(self) -> tuple[CpuSeen, GpuSeen | None, str | None]:
        """A window ends: what was seen of the CPU and of the GPU, or why no GPU was read."""
        gpu = None if self._gpu is None else self._gpu.end()
        return self._cpu.end(), gpu, self._no_gpu

    def stop(self) -> None:
        """Let go of everything; again: nothing."""
        if self._gpu is not None:
            self._gpu.stop()
        self._cpu.stop()


def _unread(sample: Sample) -> str | None:
    if sample.share is not None:
        return None
    if not sample.unknown:
        return "the meter gave no reading"
    first = sample.unknown[0]
    return first.reason if first.pid is None else f"pid {first.pid}: {first.reason}"


def processor_s(pids: Iterable[int], runner: RunnerProcess) -> float | None:
    """Processor time of a tree: the living, and those that they or the guard have buried. None: not readable."""
    total = 0.0
    try:
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                used = psutil.Process(pid).cpu_times()
                total += used.user + used.system + used.children_user + used.children_system
        return total + runner.buried_s()
    except psutil.Error:
        return None
