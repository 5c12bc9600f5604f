"""The work of a sweep: one job of a module that is held at a level or paused, and measured.

The shell around one runner: started as an agent starts it, told by its control document, ended whole. Its result is
worth nothing; whenever it ends another one takes its place. It judges nothing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.jobs.environment import run_environment
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, run_command
from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree

LOOK_S = 0.05
READ_S = 0.2
"""How often the GPU's counters are read within a window: a process that ends loses what it did since then."""

LOAD_S = 600.0
"""A runner that has written no phase by then will not work."""


class WorkEnded(Exception):
    """The job has ended, or never began to work; the text says how."""


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """Whose work, and how it is measured."""

    module: Module
    folder: Path  # the module's, absolute
    task: Task
    measure: Literal["gpu", "cpu"]
    readers: Callable[[], Sequence[GpuReader]]  # a fresh set: a meter closes its own
    data: Path


class Work:
    """A context manager; leaving it, however, ends every process of the job."""

    def __init__(self, request: WorkRequest, host: Host) -> None:
        self._request = request
        self._host = host
        self._stack = ExitStack()
        self._runner: RunnerProcess | None = None
        self._scratch: Scratch | None = None
        self._source: Source | None = None
        self._began = self._look_at = 0.0
        self.source_name = "cpu-threads" if request.measure == "cpu" else "gpu"

    def __enter__(self) -> Work:
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    @property
    def runs(self) -> bool:
        """Whether a job was started and has not been ended."""
        return self._runner is not None

    def age_s(self) -> float:
        """Give the seconds since the job was started; 0 without one."""
        return time.monotonic() - self._began if self.runs else 0.0

    def start(self, level: float, look: Callable[[], None]) -> None:
        """Start a job under a level and wait for its first phase; `look` is called all the while, and may raise.

        Raises `WorkEnded`, and `HostFault` for what is not the job's doing.
        """
        request, stack = self._request, self._stack
        scratch = self._scratch = stack.enter_context(Scratch("oarbank-sweep"))
        scratch.write_first(envelope(request.module, request.task, self._host.platform), {})
        work = str(scratch.workdir)
        job = f"sweep-{secrets.token_hex(6)}"
        env = run_environment(request.module, self._host, workdir=work, data=str(request.data), attempt=job)
        command = run_command(request.module, str(request.folder), self._host.python, work)
        self._began = time.monotonic()
        try:
            self._runner = stack.enter_context(RunnerProcess(command, env, scratch.workdir, scratch=scratch.root))
        except StartRefused as exc:
            self.end()
            raise WorkEnded(f"the runner must start; {exc}. Look at exec in its manifest") from None
        self.hold(level)
        while not scratch.has_phase():
            look()
            self.check()
            if self.age_s() > LOAD_S:
                raise WorkEnded(f"it wrote no phase in {LOAD_S:.0f} s")
        self.hold(level)  # a nudge before its handler was there is lost, and so may be what it told
        self._source = self._meter(self._runner)

    def hold(self, level: float) -> None:
        """Let it work at a level."""
        self._tell({"gpu_duty": level})

    def pause(self, level: float) -> None:
        """Hold it back whole: by a pause where it knows one, else by a duty of 0."""
        if "cooperative_pause" in self._request.module.capabilities:
            self._tell({"gpu_duty": level, "pause": True, "reason": "protection"})
        else:
            self._tell({"gpu_duty": 0.0})

    def check(self) -> None:
        """Wait for a moment. Raises `WorkEnded` when the job has ended."""
        runner = self._there()
        ended = runner.wait(LOOK_S)
        if ended is not None:
            how = f"with status {ended.code}" if ended.code >= 0 else f"by signal {-ended.code}"
            lines = [line.strip() for line in runner.stderr_tail().splitlines() if line.strip()]
            words = "".join(char if char.isprintable() else " " for char in lines[-1])[:200] if lines else ""
            raise WorkEnded(f"it ended {how} after {self.age_s():.1f} s{f'; its last words: {words}' if words else ''}")
        if isinstance(self._source, GpuMeter) and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + READ_S
            self._source.look()

    def sample(self) -> Sample:
        """Say what it used since the last sample."""
        assert self._source is not None, "start() comes first"
        return self._source.sample()

    def end(self) -> None:
        """End it, with all that came from it; again: nothing."""
        self._runner = self._scratch = self._source = None
        self._stack.close()

    def _meter(self, runner: RunnerProcess) -> Source:
        try:
            tree = ProcessTree(runner.pid, adopted=runner.adopted)
        except NoSuchProcess:
            raise WorkEnded("it ended as soon as it had begun") from None
        if self._request.measure == "cpu":
            source: Source = CpuThreads(tree, keep_s=1.0)
        else:
            source = GpuMeter(tree, self._request.readers())
        source.start()
        self._stack.callback(source.stop)
        self.source_name = source.name
        return source

    def _tell(self, document: dict[str, Any]) -> None:
        if self._scratch is None:
            raise HostFault("sweep: there is no job to tell. Report it.")
        self._scratch.replace_control(document)
        self._there().nudge()

    def _there(self) -> RunnerProcess:
        assert self._runner is not None, "start() comes first"
        return self._runner
