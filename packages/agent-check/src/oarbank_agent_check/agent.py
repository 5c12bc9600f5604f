"""Run one job as an agent does, with no fleet: ask the law, start the runner, keep what came of it.

The shell of a whole run: its directories, its processes, its result. However this program ends, nothing of the job is
left. It decides nothing: `core` says who may run, `outcome` what the end means.
"""

from __future__ import annotations

from typing import cast

from oarbank_agent_check import outcome
from oarbank_agent_check.actions import Admit, Hold
from oarbank_agent_check.inputs import GpuUse, Job, Policy, Protected
from oarbank_agent_check.inputs import JobEnd as JobEnded
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.job_view import clock
from oarbank_agent_check.jobs.environment import run_environment
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import run_command
from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess, StartRefused
from oarbank_agent_check.jobs.specs import envelope
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import JobEnd, Outcome
from oarbank_agent_check.result_folder import ResultFolder
from oarbank_agent_check.running_job import Request, RunningJob, moment
from oarbank_agent_check.screen import Screen


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
        capabilities = request.module.capabilities
        orders = self._law.hear(
            Policy(now, "certified"),
            Protected(now, True, level=request.level),
            Job(
                now,
                request.job,
                request.module.id,
                cooperative="cooperative_throttle" in capabilities,
                gpu_use=cast(GpuUse, request.module.gpu_use),
                pausable=bool(capabilities & {"cooperative_pause", "freeze_ok"}),
            ),
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
            try:
                with RunnerProcess(command, env, scratch.workdir, scratch=scratch.root) as runner:
                    running = RunningJob(request, self._law, scratch, runner, self._interrupts, self._screen)
                    ended = running.until_end()
            except StartRefused as exc:
                return Outcome(outcome.NO, f"failed: the runner must start; {exc}. Look at exec in its manifest.")
            end = _end(scratch, runner, ended, running.stopped)
            found = outcome.outcome(end, running.held() if request.check else None)
            self._screen.close()
            self._tell_held(running)
            return self._kept(found, scratch, end, running)

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


def _end(scratch: Scratch, runner: RunnerProcess, ended: Ended | None, stopped: str | None) -> JobEnd:
    result = scratch.result()
    return JobEnd(
        code=None if ended is None else ended.code,
        stopped=stopped,
        result=result,
        failure=scratch.failure(),
        missing=scratch.missing_files(result),
        stderr=runner.stderr_tail(),
    )
