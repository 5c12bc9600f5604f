"""Run one job as an agent does, with no fleet: ask the law, start the runner, keep what came of it.

The shell of a whole run: its directories, its processes, its result. However this program ends, nothing of the job is
left. It decides nothing: `core` says who may run, `outcome` what the end means. Several jobs beside programs that are
looked at are `guard`'s.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from oarbank_agent_check import outcome
from oarbank_agent_check.actions import Action, Admit, Ban, Hold
from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.inputs import GpuUse, Job, Policy, Pressure, Protected
from oarbank_agent_check.inputs import JobEnd as JobEnded
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.job_view import clock
from oarbank_agent_check.jobs.environment import run_environment
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, run_command
from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess, StartRefused
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import JobEnd, Outcome
from oarbank_agent_check.owner_command import OwnerCommand
from oarbank_agent_check.result_folder import ResultFolder
from oarbank_agent_check.running_job import LOOK_S, Measure, RunningJob, Terms, moment
from oarbank_agent_check.screen import Screen


@dataclass(frozen=True, slots=True)
class Request:
    """What an owner asks for."""

    module: Module
    folder: Path  # the module's, absolute
    task: Task
    job: str  # the attempt's name
    level: float  # of the GPU's time; the duty to begin with, and the most there ever is
    pressure: str | None  # a command; None: the duty stays as it is
    measure: Measure
    readers: Sequence[GpuReader]  # for `gpu`
    check: bool  # False: what is measured is shown and never judged
    data: Path  # the module's own folder, which stays


def asks(t: float, job: str, module: Module) -> Job:
    """What the law hears of a module's job that asks to run."""
    return Job(
        t,
        job,
        module.id,
        cooperative="cooperative_throttle" in module.capabilities,
        gpu_use=cast(GpuUse, module.gpu_use),
        pausable=bool(module.capabilities & {"cooperative_pause", "freeze_ok"}),
    )


def job_end(scratch: Scratch, runner: RunnerProcess, ended: Ended | None, stopped: str | None) -> JobEnd:
    """What a runner left behind; `ended` is None for one that has to be killed."""
    result = scratch.result()
    return JobEnd(
        code=None if ended is None else ended.code,
        stopped=stopped,
        result=result,
        failure=scratch.failure(),
        missing=scratch.missing_files(result),
        stderr=runner.stderr_tail(),
    )


class Agent:
    """One job from the question whether it may run to its result."""

    def __init__(
        self, request: Request, law: Law, host: Host, out: ResultFolder, interrupts: Interrupts, screen: Screen
    ) -> None:
        self._request = request
        self._law = law
        self._host = host
        self._out = out
        self._interrupts = interrupts
        self._screen = screen
        self._interrupted = False
        self._pressure_why: str | None = None

    def run(self) -> Outcome:
        """Run it. Raises `HostFault`, and what the journal raises; nothing of the job is left then either."""
        request = self._request
        try:
            waits = self._asked()
            return self._started() if waits is None else Outcome(outcome.NO, waits)
        finally:
            now = self._law.clock.now()
            self._law.hear(JobEnded(now, request.job), Protected(now, False))

    def _asked(self) -> str | None:
        """Ask the law whether the job may start; why not, or None."""
        request, now = self._request, self._law.clock.now()
        orders = self._law.hear(
            Policy(now, "certified"),
            Protected(now, True, level=request.level),
            asks(now, request.job, request.module),
        )
        if any(isinstance(order, Admit) for order in orders):
            return None
        reasons = [order.reason for order in orders if isinstance(order, Hold)]
        until = self._law.banned_until(request.module.id)
        when = "" if until is None else f", until {moment(self._law, until)}"
        return f"not started: {reasons[-1] if reasons else 'the law holds it'}{when}"

    def _started(self) -> Outcome:
        request = self._request
        with Scratch("oarbank-run") as scratch:
            scratch.write_first(envelope(request.module, request.task, self._host.platform), {})
            work = str(scratch.workdir)
            env = run_environment(request.module, self._host, workdir=work, data=str(request.data), attempt=request.job)
            command = run_command(request.module, str(request.folder), self._host.python, work)
            terms = Terms(
                job=request.job,
                pauses="cooperative_pause" in request.module.capabilities,
                grace_s=request.module.stop_grace_s,
                timeout_s=request.task.stage.timeout_s,
                measure=request.measure,
                readers=request.readers,
                check=request.check,
            )
            try:
                with RunnerProcess(command, env, scratch.workdir, scratch=scratch.root) as runner:
                    running = RunningJob(terms, self._law, scratch, runner, self._screen.say)
                    ended = self._until_end(running)
            except StartRefused as exc:
                return Outcome(outcome.NO, f"failed: the runner must start; {exc}. Look at exec in its manifest.")
            end = job_end(scratch, runner, ended, running.stopped)
            found = outcome.outcome(end, running.held() if request.check else None)
            self._screen.close()
            self._tell_held(running)
            return self._kept(found, scratch, end, running)

    # ---- while it runs --------------------------------------------------------------------------------------

    def _until_end(self, running: RunningJob) -> Ended | None:
        """Steer and measure until the runner has ended; None when it has to be killed."""
        pressure = None if self._request.pressure is None else OwnerCommand(self._request.pressure)
        try:
            with running:
                return self._watch(running, pressure)
        finally:
            if pressure is not None:
                pressure.close()

    def _watch(self, running: RunningJob, pressure: OwnerCommand | None) -> Ended | None:
        period_s = self._law.clock.real(SAMPLE_S)
        sample_at = time.monotonic() + period_s
        if pressure is not None:
            self._ask(running, pressure)
        while True:
            if (ended := running.look(LOOK_S)) is not None:
                return ended
            now = time.monotonic()
            if pressure is not None:
                self._answer(running, pressure)
            if now >= sample_at:
                sample_at = max(sample_at + period_s, now)
                if (seen := running.sample()) is not None:
                    self._carry_out(running, self._law.hear(seen))
                if pressure is not None:
                    self._ask(running, pressure)
            self._carry_out(running, self._law.pass_time())
            self._mind_interrupts(running)
            if running.overdue:
                return None
            self._screen.show(running.view())

    def _ask(self, running: RunningJob, pressure: OwnerCommand) -> None:
        if not pressure.ask():
            self._press(running, pressure, None)

    def _answer(self, running: RunningJob, pressure: OwnerCommand) -> None:
        done, value = pressure.answer()
        if done:
            self._press(running, pressure, value)

    def _press(self, running: RunningJob, pressure: OwnerCommand, value: float | None) -> None:
        if pressure.fault is not None and pressure.fault != self._pressure_why:
            self._screen.say(f"--pressure: {pressure.fault}; until it answers, the program counts as slowed")
        self._pressure_why = pressure.fault
        self._carry_out(running, self._law.hear(Pressure(self._law.clock.now(), value)))

    def _carry_out(self, running: RunningJob, orders: Sequence[Action]) -> None:
        running.carry_out(orders)
        for order in orders:
            if isinstance(order, Ban):
                until = moment(self._law, order.until)
                self._screen.say(f"module {order.module}: banned until {until}: {order.reason}")

    def _mind_interrupts(self, running: RunningJob) -> None:
        if self._interrupts.count and not self._interrupted:
            self._interrupted = True
            grace_s = self._request.module.stop_grace_s
            self._screen.say(f"{self._interrupts.name}: the job stops, in {grace_s:g} s at most; once more ends it now")
            running.stop(self._interrupts.name)
        if self._interrupts.count > 1:
            running.hurry()

    # ---- what came of it ------------------------------------------------------------------------------------

    def _tell_held(self, running: RunningJob) -> None:
        held = running.held()
        if held.share is not None:
            noun = "sample" if held.samples - held.unread == 1 else "samples"
            mean = f"the mean of {held.samples - held.unread} {noun} by {running.source_name}"
            self._screen.say(f"held {held.share:.3f}, {mean}; asked at most {self._request.level:.3f}")
        elif held.samples:
            self._screen.say(f"held: unknown, none of {held.samples} samples could be read")
        elif running.source_name:
            self._screen.say("held: nothing is known, the job ended before its second sample")
        else:
            self._screen.say("held: nothing was measured")

    def _kept(self, found: Outcome, scratch: Scratch, end: JobEnd, running: RunningJob) -> Outcome:
        if found.result is None or end.result is None:
            return found
        files = self._out.keep(scratch.workdir, end.result, found.result)
        noun = "file" if files == 1 else "files"
        line = f"{found.line} in {clock(running.ran_s())}; {files} {noun} in {self._out.path}"
        return Outcome(found.exit, line, found.result)
