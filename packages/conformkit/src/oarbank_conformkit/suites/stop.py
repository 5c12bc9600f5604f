"""Stop a running runner and watch: the document, the nudge, the acknowledgement, the end.

Only the document and the nudge are sent, no signal that ends anything, so a runner that ends did it by itself; in the
one run that asks for it SIGTERM follows, as an agent sends it. Beside the moments it notes how much a busy machine took
from the runner and from the kit, for `judge` to weigh.
"""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field

from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess
from oarbank_conformkit.evidence import StopSeen
from oarbank_conformkit.faults import found
from oarbank_conformkit.judge.stop import ACKNOWLEDGE_S
from oarbank_conformkit.measure import RunQueue
from oarbank_conformkit.suites.bench import POLL_S
from oarbank_conformkit.workdir import Scratch
from oarbank_sdk.contracts.judge import judge

STALL_S = 0.02
"""A look that comes this much late was held up; less is the ordinary lateness of a sleep."""

EXTRA_S = 5.0
"""How much longer the kit waits, at most, where a busy machine took that much."""


def stop(scratch: Scratch, runner: RunnerProcess, grace_s: float, began: float, *, terminate: bool = False) -> StopSeen:
    """Write a stop into the control document, nudge, and watch until the runner is gone or both bounds are passed.

    With `terminate` every process of the runner gets SIGTERM at once, as from an agent (`running_job`).
    """
    if runner.wait(0.0) is not None or scratch.result() is not None or scratch.failure() is not None:
        return StopSeen("finished_first", grace_s, lasted_s=lasted(runner, began))
    watch = _Watch(scratch, runner, grace_s, RunQueue(lambda: [runner.pid, *runner.adopted()]))
    scratch.change_control({"stop": True})
    runner.nudge()
    if terminate:
        runner.signal_all(signal.SIGTERM)
    watch.nudged = time.monotonic()
    return watch.until_gone()


def lasted(runner: RunnerProcess, began: float) -> float:
    """Give the seconds from `began` to the runner's end, or to now."""
    ended = runner.wait(0.0)
    return (time.monotonic() if ended is None else ended.at) - began


@dataclass(slots=True)
class _Watch:
    scratch: Scratch
    runner: RunnerProcess
    grace_s: float
    queue: RunQueue
    nudged: float = 0.0
    ack: str | None = None
    ack_s: float | None = None
    ack_fault: str | None = None
    absent_s: float = 0.0
    alive_s: float = 0.0
    stalled_s: float = 0.0
    disturbed_ack_s: float = field(default=0.0)

    def until_gone(self) -> StopSeen:
        ended = None
        while ended is None:
            before = self._now()
            self._look(before)
            ended = self.runner.wait(POLL_S)
            after = self._now()
            if ended is None:
                self.alive_s = after
            self.stalled_s += max(0.0, after - before - POLL_S - STALL_S)
            self.queue.step()
            if after > max(self.grace_s, ACKNOWLEDGE_S) + min(self._disturbed(), EXTRA_S):
                break
        self._look(self._now())
        return self._seen(ended)

    def _now(self) -> float:
        return time.monotonic() - self.nudged

    def _disturbed(self) -> float:
        return max(self.stalled_s, self.queue.waited_s())

    def _look(self, at: float) -> None:
        """Look once for an acknowledgement, at `at` seconds."""
        if self.ack is not None:
            return
        failure = self.scratch.failure()
        if failure is not None:
            self.ack, self.ack_fault = "failure", _ack_fault(failure)
        elif self.scratch.result() is not None:
            self.ack = "result"
        if self.ack is None:
            self.absent_s = at
        else:
            self.ack_s, self.disturbed_ack_s = self._now(), self._disturbed()

    def _seen(self, ended: Ended | None) -> StopSeen:
        if ended is None:
            outcome = "ignored" if self.ack is None else "timeout"
        else:
            outcome = "stopped" if self.ack is not None else "ignored"
        result = self.scratch.result() if self.ack == "result" else None
        return StopSeen(
            outcome,  # type: ignore[arg-type]
            self.grace_s,
            ack=self.ack,  # type: ignore[arg-type]
            ack_s=self.ack_s,
            ack_fault=self.ack_fault,
            absent_s=self.absent_s,
            exit_s=None if ended is None else max(ended.at - self.nudged, 0.0),
            alive_s=self.alive_s,
            code=None if ended is None else ended.code,
            disturbed_ack_s=self.disturbed_ack_s if self.ack is not None else self._disturbed(),
            disturbed_s=self._disturbed(),
            stderr=self.runner.stderr_tail(),
            result=result,
            missing_files=self.scratch.missing_files(result),
            nudged=self.nudged,
        )


def _ack_fault(failure: bytes) -> str | None:
    """What keeps failure.json from being an acknowledgement."""
    verdict = judge("runner-failure-1", failure)
    if not verdict.valid:
        return verdict.faults[0].line("")
    fault = verdict.value.get("fault")
    return None if fault == "transient" else f"/fault: must be transient; found {found(fault)}"
