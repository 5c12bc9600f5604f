"""A job while its runner lives: steered by what the law orders, measured every two seconds.

The shell around `core`: it writes control.json and nudges, takes samples, asks the owner's pressure command, and reads
what the runner writes. What a share means, who is paused and who is stopped is decided in `core`; what a runner reports
of itself is shown and decides nothing.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from oarbank_agent_check import core
from oarbank_agent_check.actions import Action, Ban, Pause, Release, Resume, Stop
from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.duty_reports import DutyReports
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.inputs import Pressure, SampleSeen
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.job_view import JobView, clock
from oarbank_agent_check.jobs.module import Module
from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess
from oarbank_agent_check.jobs.specs import Task
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import Held
from oarbank_agent_check.pressure_command import PressureCommand
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.screen import Screen
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree

LOOK_S = 0.05
"""How often the agent looks up; the runner's end wakes it at once."""

READ_S = 0.2
"""How often the files that a runner writes are read; nothing announces them."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an owner asks for."""

    module: Module
    folder: Path  # the module's, absolute
    task: Task
    job: str  # the attempt's name
    level: float  # of the GPU's time; the duty to begin with, and the most there ever is
    pressure: str | None  # a command; None: the duty stays as it is
    measure: Literal["gpu", "cpu"]
    readers: Sequence[GpuReader]  # for `gpu`
    check: bool  # False: what is measured is shown and never judged
    data: Path  # the module's own folder, which stays


def moment(law: Law, t: float) -> str:
    """Say a moment of the agent's clock as a person's: the time of day, and how far away it is."""
    away = law.clock.real(t - law.clock.now())
    return f"{time.strftime('%H:%M:%S', time.localtime(law.clock.wall(t)))} (in {clock(away)})"


@dataclass(slots=True)
class RunningJob:
    """The job while its runner lives."""

    request: Request
    law: Law
    scratch: Scratch
    runner: RunnerProcess
    interrupts: Interrupts
    screen: Screen
    stopped: str | None = None
    source_name: str = ""
    _document: dict[str, Any] = field(default_factory=dict)
    _frozen: bool = False
    _stop_by: float = 0.0
    _interrupted: bool = False
    _began: float = field(default_factory=time.monotonic)
    _ended_at: float | None = None
    _reports: DutyReports = field(default_factory=DutyReports)
    _offset: int = 0
    _phase: str | None = None
    _newest: Sample | None = None
    _measured: float | None = None
    _unread_why: str | None = None
    _pressure_why: str | None = None
    _was_held: bool = False
    _samples: int = 0  # whole ones, outside of pauses
    _unread: int = 0  # of these
    _busy_s: float = 0.0
    _window_s: float = 0.0

    def until_end(self) -> Ended | None:
        """Steer and measure until the runner has ended; None when it had to be killed."""
        self._carry_out(())
        source = self._source()
        pressure = None if self.request.pressure is None else PressureCommand(self.request.pressure)
        try:
            if source is not None:
                source.start()
            return self._watch(source, pressure)
        finally:
            if source is not None:
                source.stop()
            if pressure is not None:
                pressure.close()

    def held(self) -> Held:
        """What was measured over the whole run."""
        return Held(self._samples, self._unread, self._busy_s / self._window_s if self._window_s else None)

    def ran_s(self) -> float:
        """Give the seconds since the start, up to the end."""
        return (time.monotonic() if self._ended_at is None else self._ended_at) - self._began

    def _source(self) -> Source | None:
        cpu = self.request.measure == "cpu"
        if not cpu and not self.request.readers:
            return None
        try:
            tree = ProcessTree(self.runner.pid, adopted=self.runner.adopted)
        except NoSuchProcess:  # it has ended already
            return None
        source: Source = CpuThreads(tree, keep_s=1.0) if cpu else GpuMeter(tree, self.request.readers)
        self.source_name = source.name
        return source

    def _watch(self, source: Source | None, pressure: PressureCommand | None) -> Ended | None:
        period_s = self.law.clock.real(SAMPLE_S)
        sample_at = self._began + period_s
        read_at = 0.0
        if pressure is not None:
            self._ask(pressure)
        while True:
            ended = self.runner.wait(LOOK_S)
            now = time.monotonic()
            if ended is not None or now >= read_at:
                read_at = now + READ_S
                self._read_files()
                if isinstance(source, GpuMeter) and ended is None:
                    source.look()
            if ended is not None:
                self._ended_at = ended.at
                return ended
            if pressure is not None:
                self._answer(pressure)
            if now >= sample_at:
                sample_at = max(sample_at + period_s, now)
                if source is not None:
                    self._sample(source)
                if pressure is not None:
                    self._ask(pressure)
            self._carry_out(self.law.pass_time())
            self._mind_interrupts(now)
            if self.stopped is not None and now >= self._stop_by:
                return None
            self.screen.show(self._view())

    # ---- what is measured and heard ---------------------------------------------------------------------

    def _sample(self, source: Source) -> None:
        baseline = self._newest is None
        sample = self._newest = source.sample()
        if not baseline:
            self._count(sample)
        why = sample.unknown[0].reason if sample.unknown else None
        if why is not None and why != self._unread_why:
            self.screen.say(f"could not measure: {why}")
        self._unread_why = why
        if self.request.check and self.stopped is None:
            seen = SampleSeen(self.law.clock.now(), self.request.job, sample.share, sample.low, sample.high, baseline)
            self._carry_out(self.law.hear(seen))

    def _count(self, sample: Sample) -> None:
        self._measured = sample.share
        before, self._was_held = self._was_held, bool(self._document.get("pause"))
        if before or self._was_held:  # a pause is in its window
            return
        self._samples += 1
        if sample.share is None or sample.busy_s is None:
            self._unread += 1
        else:
            self._busy_s += sample.busy_s
            self._window_s += sample.window_s

    def _ask(self, pressure: PressureCommand) -> None:
        if not pressure.ask():
            self._press(pressure, None)

    def _answer(self, pressure: PressureCommand) -> None:
        done, value = pressure.answer()
        if done:
            self._press(pressure, value)

    def _press(self, pressure: PressureCommand, value: float | None) -> None:
        if pressure.fault is not None and pressure.fault != self._pressure_why:
            self.screen.say(f"--pressure: {pressure.fault}; until it answers, the program counts as slowed")
        self._pressure_why = pressure.fault
        self._carry_out(self.law.hear(Pressure(self.law.clock.now(), value)))

    def _read_files(self) -> None:
        self._phase = self.scratch.phase()
        data = self.scratch.events(self._offset)
        self._offset += len(data)
        self._reports.feed(data)

    # ---- what is ordered ----------------------------------------------------------------------------------

    def _carry_out(self, orders: Sequence[Action]) -> None:
        for order in orders:
            self._tell(order)
            if isinstance(order, (Stop, Release)):
                self._stop(order.reason)
        document = core.document(self.law.state, self.request.job)
        if self.stopped is None and document != self._document:
            self._document = document
            self._freeze(document)
            self.scratch.replace_control(document)
            self.runner.nudge()

    def _freeze(self, document: dict[str, Any]) -> None:
        """A runner that cannot hold itself is held by the system, all of its processes."""
        frozen = bool(document.get("pause")) and "cooperative_pause" not in self.request.module.capabilities
        if frozen != self._frozen:
            self._frozen = frozen
            self.runner.signal_all(signal.SIGSTOP if frozen else signal.SIGCONT)

    def _stop(self, why: str) -> None:
        """Tell it to stop, by the document, the nudge and SIGTERM; it has its grace to do so."""
        if self.stopped is not None:
            return
        self.stopped = why
        self._stop_by = time.monotonic() + self.request.module.stop_grace_s
        self._freeze({})
        self.scratch.replace_control({**self._document, "stop": True})
        self.runner.nudge()
        self.runner.signal_all(signal.SIGTERM)

    def _mind_interrupts(self, now: float) -> None:
        if self.interrupts.count and not self._interrupted:
            self._interrupted = True
            grace_s = self.request.module.stop_grace_s
            self.screen.say(f"{self.interrupts.name}: the job stops, in {grace_s:g} s at most; once more ends it now")
            self._stop(self.interrupts.name)
        if self.interrupts.count > 1:
            self._stop_by = now
        elif now - self._began > self.request.task.stage.timeout_s:
            self._stop(f"timeout_s: it may run for {self.request.task.stage.timeout_s:g} s")

    def _tell(self, order: Action) -> None:
        if isinstance(order, Pause):
            until = "" if order.until is None else f" until {moment(self.law, order.until)}"
            self.screen.say(f"paused{until}: {order.reason}")
        elif isinstance(order, Resume):
            self.screen.say("goes on")
        elif isinstance(order, Ban):
            self.screen.say(f"module {order.module}: banned until {moment(self.law, order.until)}: {order.reason}")

    def _view(self) -> JobView:
        duty = self._document.get("gpu_duty")
        return JobView(
            running_s=self.ran_s(),
            asked=duty,
            paused=bool(self._document.get("pause")),
            stopping=self.stopped is not None,
            reported=None if self._reports.newest is None else self._reports.newest.share,
            measured=self._measured,
            unread=self._newest is not None and self._newest.share is None,
            strikes=self.law.strikes(),
            phase=self._phase,
        )
