"""A job, or a workload, while its process lives: steered by what the law orders, measured when it is asked to be.

The shell around `core` for one process tree: it writes control.json and nudges, takes samples, and reads what the
process writes. What a share means, who is paused and who is stopped is decided in `core`; what a runner reports of
itself is shown and decides nothing. It has no loop of its own: whoever runs it looks in (`look`, `sample`).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from oarbank_agent_check import core, presence
from oarbank_agent_check.actions import Action, Pause, Release, Resume, Stop
from oarbank_agent_check.duty_reports import DutyReports
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.inputs import SampleSeen
from oarbank_agent_check.job_view import JobView, clock
from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import Held
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree

LOOK_S = 0.05
"""How often an agent looks up."""

READ_S = 0.2
"""How often the files that a process writes are read; nothing announces them."""

Measure = Literal["gpu", "cpu"]


@dataclass(frozen=True, slots=True)
class Terms:
    """Under which terms a process runs."""

    job: str  # the attempt's name
    pauses: bool  # it holds itself when its document says so; else the system freezes it
    grace_s: float  # to end in, once it is told to stop
    timeout_s: float | None  # it may run so long, pauses and times at a duty of 0 left out
    measure: Measure
    readers: Sequence[GpuReader]  # for `gpu`
    check: bool = True  # False: what is measured is shown and never judged


def moment(law: Law, t: float) -> str:
    """Say a moment of the agent's clock as a person's: the time of day, and how far away it is."""
    away = law.clock.real(t - law.clock.now())
    return f"{time.strftime('%H:%M:%S', time.localtime(law.clock.wall(t)))} (in {clock(away)})"


@dataclass(slots=True)
class RunningJob:
    """The process while it lives; a context manager that ends measuring. `say` tells a person a line."""

    terms: Terms
    law: Law
    scratch: Scratch
    runner: RunnerProcess
    say: Callable[[str], None]
    document: dict[str, Any] = field(default_factory=dict)
    """The control document in force, without its seq; to begin with what was written before the start."""
    had_duty: bool = False
    stopped: str | None = None
    released: Release | None = None
    source_name: str = ""
    _frozen: bool = False
    _stop_by: float = 0.0
    _began: float = field(default_factory=time.monotonic)
    _looked_at: float = field(default_factory=time.monotonic)
    _held_s: float = 0.0  # paused, or at a duty of 0
    _read_at: float = 0.0
    _ended_at: float | None = None
    _source: Source | None = None
    _reports: DutyReports = field(default_factory=DutyReports)
    _offset: int = 0
    _phase: str | None = None
    _newest: Sample | None = None
    _measured: float | None = None
    _unread_why: str | None = None
    _was_held: bool = False
    _samples: int = 0  # whole ones, outside of pauses and before it is told to stop
    _unread: int = 0  # of these
    _busy_s: float = 0.0
    _window_s: float = 0.0

    def __enter__(self) -> RunningJob:
        self.carry_out(())
        self._source = self._made_source()
        if self._source is not None:
            self._source.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._source is not None:
            self._source.stop()

    # ---- what its owner asks --------------------------------------------------------------------------------

    def look(self, wait_s: float = 0.0) -> Ended | None:
        """Wait at most `wait_s` for the end; read what the process wrote; stop one that runs too long."""
        ended = self.runner.wait(wait_s)
        now = time.monotonic()
        if self._is_held:
            self._held_s += now - self._looked_at
        self._looked_at = now
        if ended is not None or now >= self._read_at:
            self._read_at = now + READ_S
            self._read_files()
            if isinstance(self._source, GpuMeter) and ended is None:
                self._source.look()
        if ended is not None:
            self._ended_at = ended.at
        elif self.terms.timeout_s is not None and now - self._began - self._held_s > self.terms.timeout_s:
            self.stop(f"timeout_s: it may run for {self.terms.timeout_s:g} s")
        return ended

    @property
    def overdue(self) -> bool:
        """Whether it was told to stop and its grace is over: it has to be killed."""
        return self.stopped is not None and time.monotonic() >= self._stop_by

    @property
    def works(self) -> bool:
        """Whether it uses the GPU, or may: nothing holds it, or what was measured last says so in spite of that."""
        if not self._is_held or self.stopped is not None:
            return True
        return self._newest is not None and (self._newest.share is None or self._newest.share >= presence.BUSY)

    def sample(self) -> SampleSeen | None:
        """Measure; what the law should hear of it."""
        if self._source is None:
            return None
        baseline = self._newest is None
        sample = self._newest = self._source.sample()
        if not baseline:
            self._count(sample)
        why = sample.unknown[0].reason if sample.unknown else None
        if why is not None and why != self._unread_why:
            self.say(f"could not measure: {why}")
        self._unread_why = why
        if not self.terms.check or self.stopped is not None:
            return None
        return SampleSeen(self.law.clock.now(), self.terms.job, sample.share, sample.low, sample.high, baseline)

    def carry_out(self, orders: Sequence[Action]) -> None:
        """Do what is ordered of this job, by its control document."""
        for order in orders:
            self._tell(order)
            if isinstance(order, (Stop, Release)):
                self.released = order if isinstance(order, Release) else None
                self.stop(order.reason)
        document = core.document(self.law.state, self.terms.job)
        self.had_duty = self.had_duty or "gpu_duty" in document
        if self.stopped is None and document != self.document:
            self.document = document
            self._freeze(document)
            self.scratch.replace_control(document)
            self.runner.nudge()

    def stop(self, why: str) -> None:
        """Tell it to stop, by the document, the nudge and SIGTERM; it has its grace to do so. Again: nothing."""
        if self.stopped is not None:
            return
        self.stopped = why
        self._stop_by = time.monotonic() + self.terms.grace_s
        self._freeze({})
        self.scratch.replace_control({**self.document, "stop": True})
        self.runner.nudge()
        self.runner.signal_all(signal.SIGTERM)

    def hurry(self) -> None:
        """Take the rest of its grace away."""
        self._stop_by = time.monotonic()

    def held(self) -> Held:
        """What was measured over the whole run."""
        return Held(self._samples, self._unread, self._busy_s / self._window_s if self._window_s else None)

    def ran_s(self) -> float:
        """Give the seconds since the start, up to the end."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self._began

    def view(self) -> JobView:
        """How it stands, for a person."""
        return JobView(
            running_s=self.ran_s(),
            asked=self.document.get("gpu_duty"),
            paused=bool(self.document.get("pause")),
            stopping=self.stopped is not None,
            reported=None if self._reports.newest is None else self._reports.newest.share,
            measured=self._measured,
            unread=self._newest is not None and self._newest.share is None,
            strikes=self.law.strikes(self.terms.job),
            phase=self._phase,
        )

    @property
    def _is_held(self) -> bool:
        return bool(self.document.get("pause")) or self.document.get("gpu_duty") == 0

    # ---- inside ---------------------------------------------------------------------------------------------

    def _made_source(self) -> Source | None:
        cpu = self.terms.measure == "cpu"
        if not cpu and not self.terms.readers:
            return None
        try:
            tree = ProcessTree(self.runner.pid, adopted=self.runner.adopted)
        except NoSuchProcess:  # it has ended already
            return None
        source: Source = CpuThreads(tree, keep_s=1.0) if cpu else GpuMeter(tree, self.terms.readers)
        self.source_name = source.name
        return source

    def _count(self, sample: Sample) -> None:
        self._measured = sample.share
        before, self._was_held = self._was_held, bool(self.document.get("pause"))
        if before or self._was_held or self.stopped is not None:  # a pause, or its end, is in its window
            return
        self._samples += 1
        if sample.share is None or sample.busy_s is None:
            self._unread += 1
        else:
            self._busy_s += sample.busy_s
            self._window_s += sample.window_s

    def _read_files(self) -> None:
        self._phase = self.scratch.phase()
        data = self.scratch.events(self._offset)
        self._offset += len(data)
        self._reports.feed(data)

    def _freeze(self, document: dict[str, Any]) -> None:
        """One that cannot hold itself is held by the system, all of its processes."""
        frozen = bool(document.get("pause")) and not self.terms.pauses
        if frozen != self._frozen:
            self._frozen = frozen
            self.runner.signal_all(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _tell(self, order: Action) -> None:
        if isinstance(order, Pause):
            until = "" if order.until is None else f" until {moment(self.law, order.until)}"
            self.say(f"paused{until}: {order.reason}")
        elif isinstance(order, Resume):
            self.say("goes on")
