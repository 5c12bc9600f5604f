"""Kill a golden in the middle of its work and run it again, in a fresh workdir beside the same data directory."""

from __future__ import annotations

import signal
import time

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence import RetrySeen
from oarbank_conformkit.judge.retry import judge_retry
from oarbank_conformkit.steps import RetryStep
from oarbank_conformkit.suites.bench import Bench, Setting, finished, first_phase
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import Scratch

TRIES = 3
"""How often a task that ends too early is started anew, to be killed earlier each time."""


def run(bench: Bench, step: RetryStep) -> Outcome:
    """Kill it, run it again, and compare with the first run."""
    began = time.monotonic()
    try:
        seen = RetrySeen()
        for attempt in range(TRIES):
            seen = _killed_and_run(bench, step, bench.first.work_s / 2 ** (attempt + 1))
            if seen.killed_s is not None:
                break
    except StartRefused as exc:
        seen = RetrySeen(refused=str(exc))
    told = judge_retry(bench.module, step.golden, bench.first.digest, seen)
    return Outcome(timed([told], time.monotonic() - began))


def _killed_and_run(bench: Bench, step: RetryStep, after_s: float) -> RetrySeen:
    began = time.monotonic()
    with bench.run(step.task) as (scratch, runner):
        if not _reached(scratch, runner, after_s, bench.first.took_s):
            return RetrySeen()
        runner.signal_all(signal.SIGKILL)
        killed_s = time.monotonic() - began
        runner.close()
        again = time.monotonic()
        with bench.run(step.task, Setting(data=scratch.data)) as (second, other):
            return RetrySeen(killed_s=killed_s, run=finished(second, other, again, step.task.stage.timeout_s))


def _reached(scratch: Scratch, runner: RunnerProcess, after_s: float, took_s: float) -> bool:
    """Wait until it is at work, `after_s` after its first phase; False when it ended before."""
    if not first_phase(scratch, runner, took_s / 2):
        return runner.wait(0.0) is None  # it writes no phase: half of its time is the middle
    return runner.wait(after_s) is None and scratch.result() is None
