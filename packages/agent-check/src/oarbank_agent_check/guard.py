"""Guard a machine: programs that own the GPU, and several jobs and workloads that may use what is left of it.

The shell around `core` for a whole machine, in one loop: it looks at the programs, runs the lanes, tells the law what
it saw, and has carried out what the law orders. It decides nothing. However it ends, nothing that it started is left:
a process beside each runner ends it even when this one is killed, and the next start goes on from what was remembered.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oarbank_agent_check import guard_view
from oarbank_agent_check.actions import Action, Ban, Unban
from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.guard_view import GuardView
from oarbank_agent_check.inputs import GpuJobs, Input, Policy, Protected
from oarbank_agent_check.inputs import JobEnd as JobEnded
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.lanes import Lane
from oarbank_agent_check.law import Law
from oarbank_agent_check.outcome import COULD_NOT_TELL, NO, RESULT
from oarbank_agent_check.process_scan import SCAN_S, ProcessScan
from oarbank_agent_check.programs import ProtectedProgram
from oarbank_agent_check.running_job import LOOK_S, READ_S, moment
from oarbank_agent_check.screen import Screen

READS_A_SAMPLE = 10
"""A counter is read so many times a sample at least."""

JOBS_DONE = "all jobs are done"


@dataclass(slots=True)
class Guard:
    """The machine while it is guarded. `tell` takes each moment's view: for a page, or a program that reads along."""

    rule: GpuJobs
    programs: Sequence[ProtectedProgram]
    lanes: Sequence[Lane]
    law: Law
    scan: ProcessScan
    interrupts: Interrupts
    screen: Screen
    tell: Callable[[GuardView], None]
    _began: float = field(default_factory=time.monotonic)
    _scan_at: float = 0.0
    _read_at: float = 0.0
    _sample_at: float = 0.0
    _interrupted: bool = False

    def run(self) -> int:
        """Guard until all jobs are done, or every workload has ended where there is no job; the exit code.

        Raises `HostFault`, and what the journal raises; nothing that was started is left then either.
        """
        try:
            now = time.monotonic()
            self._sample_at = now + self.law.clock.real(SAMPLE_S)
            told: list[Input] = [Policy(self.law.clock.now(), self.rule)]
            self._hear([*told, *self._look_at_programs(now)])
            while not all(lane.done for lane in self.lanes):
                self._turn()
                time.sleep(LOOK_S)
            self._show()
            return self._exit_code()
        finally:
            self._end()

    # ---- one turn -------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        now = time.monotonic()
        told: list[Input] = []
        for lane in self.lanes:
            told += lane.look(self.law.clock.now())
        told += self._look_at_programs(now)
        if now >= self._sample_at:
            period_s = self.law.clock.real(SAMPLE_S)
            self._sample_at = max(self._sample_at + period_s, now)
            told += self._samples(period_s / 2)
        for lane in self.lanes:
            told += lane.ask(self.law.clock.now())
        self._hear(told)
        self._mind_end()
        self._show()

    def _look_at_programs(self, now: float) -> list[Input]:
        """Who is there, and how far each has come."""
        told: list[Input] = []
        if now >= self._scan_at:
            self._scan_at = now + SCAN_S
            pids = self.scan.pids()
            for program in self.programs:
                told += program.found(self.law.clock.now(), pids[program.name])
        if now >= self._read_at:
            self._read_at = now + min(READ_S, self.law.clock.real(SAMPLE_S / READS_A_SAMPLE))
            working = any(lane.works for lane in self.lanes)
            for program in self.programs:
                program.read(self.law.clock.now(), working)
        return told

    def _samples(self, least_s: float) -> list[Input]:
        told: list[Input] = []
        for lane in self.lanes:
            if (seen := lane.sample()) is not None:
                told.append(seen)
        for program in self.programs:
            told += program.sample(self.law.clock.now(), least_s)
        return told

    def _hear(self, told: Sequence[Input]) -> None:
        orders = self.law.hear(*told) if told else self.law.pass_time()
        if orders:
            self._carry_out(orders)

    def _carry_out(self, orders: Sequence[Action]) -> None:
        """In the law's own turn, in which shares never add up to more than there is."""
        for order in orders:
            if isinstance(order, Ban):
                until = moment(self.law, order.until)
                self.screen.say(f"module {order.module}: banned until {until}: {order.reason}")
            elif isinstance(order, Unban):
                self.screen.say(f"module {order.module}: no longer banned")
        concerned = dict.fromkeys(job for order in orders if (job := getattr(order, "job", None)) is not None)
        for job in concerned:
            for lane in self.lanes:
                if lane.attempt == job:
                    lane.take(orders)

    def _mind_end(self) -> None:
        if self.interrupts.count and not self._interrupted:
            self._interrupted = True
            self.screen.say(f"{self.interrupts.name}: everything stops, each in its grace; once more ends it now")
            for lane in self.lanes:
                lane.end(self.interrupts.name)
        if self.interrupts.count > 1:
            for lane in self.lanes:
                lane.hurry()
        jobs = [lane for lane in self.lanes if not lane.long_running]
        if jobs and all(lane.done for lane in jobs):
            for lane in self.lanes:
                if not lane.ending:
                    lane.end(JOBS_DONE)

    def _show(self) -> None:
        view = GuardView(
            t=time.time(),
            running_s=time.monotonic() - self._began,
            rule=self.rule,
            programs=tuple(program.view() for program in self.programs),
            lanes=tuple(lane.view() for lane in self.lanes),
        )
        self.screen.put(guard_view.table(view), guard_view.lines(view), view.change)
        self.tell(view)

    # ---- the end --------------------------------------------------------------------------------------------

    def _exit_code(self) -> int:
        exits = [code for lane in self.lanes for code in lane.exits]
        unfinished = any(lane.plans for lane in self.lanes if not lane.long_running)
        if unfinished or NO in exits:
            return NO
        return COULD_NOT_TELL if COULD_NOT_TELL in exits else RESULT

    def _end(self) -> None:
        """End what still runs, and tell the law that all of it is over."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._say_over)
            for closing in (*self.programs, *self.lanes):
                stack.callback(closing.close)

    def _say_over(self) -> None:
        now = self.law.clock.now()
        jobs: list[Input] = [JobEnded(now, job) for job in self.law.state.jobs]
        programs: list[Input] = [
            Protected(now, False, program=beside.told.program) for beside in self.law.state.programs.values()
        ]
        if jobs or programs:
            self.law.hear(*jobs, *programs)
