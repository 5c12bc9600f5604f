"""Whether a runner works: the processor and GPU time of its whole tree, step by step, and its waits for a processor.

For suites that ask whether it works at all, or on how many processors; shares of a duty are `measure`'s. It only reads;
what cannot be read is None.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess
from oarbank_conformkit.measure import Followed, GpuCounters, NoGpu, RunQueue, processor_s

STEP_S = 0.1
"""Length of a step: ten ticks of the coarsest clock that tells processor time."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its length, the processor time used in it, and how long the most delayed thread waited, in seconds."""

    dt_s: float
    cpu_s: float
    wait_s: float
    want_s: float | None  # processor time of all its threads, and their waits for one; None: this system does not say
    ended: Ended | None


class WorkMeter:
    """Reads one runner; `known` is false where its processor time cannot be read. `stop` it however it went."""

    def __init__(self, runner: RunnerProcess) -> None:
        self._runner = runner
        self._tree: ProcessTree | None = None
        self._gpu: GpuCounters | None = None
        with contextlib.suppress(NoSuchProcess, UnreadableProcess):
            self._tree = ProcessTree(runner.pid, adopted=runner.adopted)
            with contextlib.suppress(NoGpu):
                self._gpu = GpuCounters(Followed(self._tree))
        self._queue = RunQueue(self._pids)
        self._at, self._used, self._waited = time.monotonic(), self._total(), 0.0
        self._wants = self._threads()
        self.known = self._used is not None

    def step(self, length_s: float = STEP_S) -> Step:
        """Wait for a step to pass, or for the runner's end, and say what it did in it."""
        ended = self._runner.wait(max(self._at + length_s - time.monotonic(), 0.0))
        now, used = time.monotonic(), self._total()
        self._queue.step()
        if self._gpu is not None:
            self._gpu.step()
        waited = self._queue.waited_s()
        cpu_s = 0.0 if used is None or self._used is None else max(used - self._used, 0.0)
        wants = self._threads()
        want_s = sum(max(s - self._wants.get(thread, 0.0), 0.0) for thread, s in wants.items()) if wants else None
        self._wants = wants
        step = Step(max(now - self._at, 1e-6), cpu_s, waited - self._waited, want_s, ended)
        self._at, self._used, self._waited = now, self._used if used is None else used, waited
        return step

    def begin_gpu(self) -> None:
        """From here on `gpu` counts."""
        if self._gpu is not None:
            self._gpu.start()

    def gpu(self) -> float | None:
        """Give the share of the GPU that it kept busy since `begin_gpu`."""
        return None if self._gpu is None else self._gpu.held()

    def stop(self) -> None:
        """Let go of everything; again: nothing."""
        if self._gpu is not None:
            self._gpu.stop()

    def _pids(self) -> tuple[int, ...]:
        return () if self._tree is None else self._tree.pids()

    def _threads(self) -> dict[str, float]:
        """How long each living thread has run or waited to run; empty where the system does not say."""
        found: dict[str, float] = {}
        for pid in self._pids() if self._queue.known else ():
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with (
                        contextlib.suppress(OSError, ValueError),
                        open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file,
                    ):
                        ran, waited, _ = file.read().split()
                        found[thread] = (int(ran) + int(waited)) / 1e9
        return found

    def _total(self) -> float | None:
        return None if self._tree is None else processor_s(self._pids(), self._runner)
