"""A lane of work beside the protected programs: jobs one after the other, or one workload.

The shell around one entry of the configuration: it asks the law for its next job, starts it when it is admitted, and
keeps what came of it. Whether it may run, and at which duty, is the law's; `running_job` carries that out.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check import core, outcome
from oarbank_agent_check.actions import Action, Admit, Hold
from oarbank_agent_check.admission import BLOCKED
from oarbank_agent_check.agent import asks, job_end
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.guard_config import WorkloadEntry
from oarbank_agent_check.guard_results import GuardResults
from oarbank_agent_check.guard_view import LaneView
from oarbank_agent_check.inputs import Input, Job, JobEnd, SampleSeen
from oarbank_agent_check.job_view import clock
from oarbank_agent_check.jobs.environment import run_environment
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, run_command
from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess, StartRefused
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import Outcome
from oarbank_agent_check.running_job import Measure, RunningJob, Terms


@dataclass(frozen=True, slots=True)
class Ground:
    """What all lanes stand on."""

    law: Law
    host: Host
    results: GuardResults
    measure: Measure
    readers: Callable[[], Sequence[GpuReader]]
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class JobPlan:
    """One job, checked."""

    name: str  # the entry's, with a number behind it where an operation made several
    module: Module
    folder: Path  # the module's, absolute
    task: Task
    key: str  # what it is: equal jobs have equal keys
    data: Path  # the module's own folder


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """One workload, checked."""

    told: WorkloadEntry
    folder: Path  # where it runs

    @property
    def name(self) -> str:
        """The owner's name of it; the law takes it for its module too."""
        return self.told.name


Plan = JobPlan | WorkloadPlan


class Lane:
    """Plans one after the other; `done` when nothing is left. Nobody waits for a workload's, a `long_running` one."""

    def __init__(self, name: str, plans: Sequence[Plan], ground: Ground, *, finished: int = 0) -> None:
        self.name = name
        self.plans = list(plans)
        self.long_running = any(isinstance(plan, WorkloadPlan) for plan in plans)
        self.attempt: str | None = None
        self.exits: list[int] = [outcome.RESULT] * finished
        self.ending = False
        self._ground = ground
        self._waits: str | None = None
        self._running: RunningJob | None = None
        self._stack = ExitStack()
        self._last: str | None = None

    @property
    def done(self) -> bool:
        """Whether nothing is left, or nothing more is to be begun and nothing runs."""
        return self._running is None and (not self.plans or self.ending)

    @property
    def works(self) -> bool:
        """Whether it may use the GPU right now."""
        return self._running is not None and self._asks("").gpu_use != "none" and self._running.works

    # ---- its turn -------------------------------------------------------------------------------------------

    def ask(self, t: float) -> list[Input]:
        """Ask for the next job, if there is one and none was asked for."""
        if self.attempt is not None or not self.plans or self.ending:
            return []
        # A name of its own: strikes belong to the attempt.
        self.attempt = f"{self.plans[0].name}-{secrets.token_hex(3)}"
        return [self._asks(self.attempt, t)]

    def take(self, orders: Sequence[Action]) -> None:
        """Do what was ordered of this lane's job."""
        mine = [order for order in orders if getattr(order, "job", None) == self.attempt and self.attempt is not None]
        for order in mine:
            if isinstance(order, Hold):
                self._waits = order.reason
                self._say(f"waits: {order.reason}")
        if self._running is not None:
            self._running.carry_out(mine)
        elif any(isinstance(order, Admit) for order in mine) and not self.ending:
            self._waits = None
            self._start()

    def look(self, t: float) -> list[Input]:
        """Look in on the job; what the law should hear when it has ended."""
        running, attempt = self._running, self.attempt
        if attempt is None:
            return []
        if running is None:  # it waits, or it could not be started
            if self.ending or self._waits is None:
                self.attempt = None
                return [JobEnd(t, attempt)]
            return []
        ended = running.look()
        if ended is None and not running.overdue:
            return []
        self._ended(running, ended)
        self.attempt = self._running = None
        return [JobEnd(t, attempt)]

    def sample(self) -> SampleSeen | None:
        """Measure what runs."""
        return None if self._running is None else self._running.sample()

    def end(self, why: str) -> None:
        """Begin nothing more, and stop what runs."""
        self.ending = True
        if self._running is not None:
            self._running.stop(why)

    def hurry(self) -> None:
        """Take the rest of its grace away."""
        if self._running is not None:
            self._running.hurry()

    def close(self) -> None:
        """End everything at once; again: nothing."""
        self._stack.close()

    def view(self) -> LaneView:
        """How it stands."""
        job = None if self._running is None else self._running.view()
        return LaneView(self.name, len(self.plans), self._waits if job is None else None, job, self._last)

    # ---- inside ---------------------------------------------------------------------------------------------

    def _asks(self, attempt: str, t: float = 0.0) -> Job:
        plan = self.plans[0]
        if isinstance(plan, JobPlan):
            return asks(t, attempt, plan.module)
        able = plan.told.capabilities
        return Job(
            t,
            attempt,
            plan.name,
            cooperative="cooperative_throttle" in able,
            gpu_use=plan.told.gpu_use,
            pausable=bool(able & {"cooperative_pause", "freeze_ok"}),
        )

    def _start(self) -> None:
        plan, ground = self.plans[0], self._ground
        assert self.attempt is not None
        stack = self._stack
        try:
            scratch = stack.enter_context(Scratch("oarbank-guard"))
            command, env, folder = self._prepared(plan, scratch)
            document: dict[str, Any] = core.document(ground.law.state, self.attempt)
            if document:  # in force before its first instruction
                scratch.replace_control(document)
            runner = stack.enter_context(RunnerProcess(command, env, folder, scratch=scratch.root))
        except StartRefused as exc:
            stack.close()
            self._over(Outcome(outcome.NO, f"failed: it must start; {exc}. Look at its command."))
            return
        terms = self._terms(plan)
        for reader in terms.readers:
            stack.callback(reader.close)
        running = RunningJob(terms, ground.law, scratch, runner, self._say, document)
        self._running = stack.enter_context(running)
        self._say("started")

    def _prepared(self, plan: Plan, scratch: Scratch) -> tuple[list[str], Mapping[str, str], Path]:
        """Write what is to be there before the start; the command, its environment and where it runs."""
        assert self.attempt is not None
        host, work = self._ground.host, str(scratch.workdir)
        if isinstance(plan, JobPlan):
            scratch.write_first(envelope(plan.module, plan.task, host.platform), {})
            env = run_environment(plan.module, host, workdir=work, data=str(plan.data), attempt=self.attempt)
            return run_command(plan.module, str(plan.folder), host.python, work), env, scratch.workdir
        scratch.write_first({}, {})
        told = plan.told
        first = told.command[0]
        program = str(plan.folder / first) if os.sep in first else _found(first, told.env)
        return [program, *told.command[1:]], {**os.environ, **told.env, "OARBANK_WORKDIR": work}, plan.folder

    def _terms(self, plan: Plan) -> Terms:
        ground = self._ground
        assert self.attempt is not None
        if isinstance(plan, JobPlan):
            able, grace_s, timeout_s = plan.module.capabilities, plan.module.stop_grace_s, plan.task.stage.timeout_s
        else:
            able, grace_s, timeout_s = plan.told.capabilities, plan.told.stop_grace_s, None
        readers = ground.readers() if ground.measure == "gpu" and self._asks("").gpu_use != "none" else ()
        measures = ground.measure == "cpu" or bool(readers)
        return Terms(
            job=self.attempt,
            pauses="cooperative_pause" in able,
            grace_s=grace_s,
            timeout_s=timeout_s,
            measure=ground.measure,
            readers=readers,
            check=measures,
        )

    def _ended(self, running: RunningJob, ended: Ended | None) -> None:
        """Keep what came of it, or ask for it anew where it was given back because of the program."""
        plan, release = self.plans[0], running.released
        again = release is not None and not self.ending and release.reason.startswith(BLOCKED)
        try:
            if isinstance(plan, WorkloadPlan):
                found = _workload_outcome(running, ended, at_end=self.ending)
            else:
                end = job_end(running.scratch, running.runner, ended, running.stopped)
                found = outcome.outcome(end, running.held() if running.had_duty else None)
                again = again and found.result is None
                if found.result is not None and end.result is not None:
                    kept = self._ground.results.keep(plan.name, plan.key, running.scratch, end.result, found.result)
                    found = Outcome(found.exit, f"{found.line} in {clock(running.ran_s())}; {kept}", found.result)
        finally:
            self._stack.close()
        if again:
            self._say("given back, it will be asked for anew")
        else:
            held = running.held()
            self._over(found, "" if held.share is None else f"; held {held.share:.3f}")

    def _over(self, found: Outcome, more: str = "") -> None:
        plan = self.plans.pop(0)
        self.exits.append(found.exit)
        self._last = found.line
        self._waits = None
        self._ground.say(f"{plan.name}: {found.line}{more}")

    def _say(self, text: str) -> None:
        self._ground.say(f"{self.plans[0].name}: {text}")


def _workload_outcome(running: RunningJob, ended: Ended | None, *, at_end: bool) -> Outcome:
    ran = f"after {clock(running.ran_s())}"
    if at_end and running.stopped is not None:
        how = "killed when its grace was over" if ended is None else "ended"
        return Outcome(outcome.RESULT, f"{how} {ran}: {running.stopped}")
    if running.stopped is not None:
        return Outcome(outcome.NO, f"stopped {ran}: {running.stopped}")
    code = None if ended is None else ended.code
    words = running.runner.stderr_tail().strip().splitlines()
    last = f"; its last words: {words[-1][:200]}" if words and code != 0 else ""
    return Outcome(outcome.RESULT if code == 0 else outcome.NO, f"ended by itself {ran} with status {code}{last}")


def _found(program: str, env: Mapping[str, str]) -> str:
    """Find a program by its name, as a shell does; the name itself where there is none, which then cannot start."""
    for folder in (env.get("PATH") or os.environ.get("PATH", os.defpath)).split(os.pathsep):
        path = os.path.join(folder or ".", program)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return program
