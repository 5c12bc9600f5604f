"""Run a golden: once for its digest, and to be stopped, with SIGTERM and without.

The first run is watched for a result.json that appears in halves. What it came to is kept for the suites that compare
with it.
"""

from __future__ import annotations

import time
from dataclasses import replace

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import check, timed
from oarbank_conformkit.evidence import RunSeen, StopSeen
from oarbank_conformkit.judge.run import crashed, judge_golden
from oarbank_conformkit.judge.stop import judge_stop, judge_stop_result, judge_terminated
from oarbank_conformkit.steps import GoldenStep, StopStep, TerminateStep
from oarbank_conformkit.suites.bench import POLL_S, Bench, finished, first_phase
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.suites.stop import lasted, stop
from oarbank_conformkit.workdir import BadFixture, Scratch
from oarbank_sdk import strictjson

TERMINATED_S = 5.0
"""How long a runner that gets SIGTERM is waited for at most: what it answers counts, and not how soon it is gone."""


def run(bench: Bench, step: GoldenStep) -> Outcome:
    """Run it for its digest."""
    began = time.monotonic()
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = _watched(scratch, runner, time.monotonic(), step.task.stage.timeout_s)
    except StartRefused as exc:
        seen = RunSeen(refused=str(exc))
    except BadFixture as exc:
        told = check("runner", "fixture.entry", f"{step.title}: fixture", "fail", str(exc))
        return Outcome([told], absent_golden="the golden cannot be laid out")
    checks, digest = judge_golden(bench.module, step.golden, seen, bench.schema)
    bench.first.digest = digest
    bench.first.took_s = seen.took_s
    bench.first.work_s = 0.0 if seen.phase_s is None else seen.took_s - seen.phase_s
    absent = f"{step.title} ended before the runner came to work" if crashed(seen) else None
    return Outcome(timed(checks, time.monotonic() - began), absent)


def _watched(scratch: Scratch, runner: RunnerProcess, began: float, limit_s: float) -> RunSeen:
    """Wait for the end, and look for the first phase and the first result on the way."""
    phase_s, torn, looked = None, None, False
    while (now := time.monotonic()) < began + limit_s:
        if runner.wait(POLL_S) is not None:
            break
        if phase_s is None and scratch.has_phase():
            phase_s = now - began
        if not looked and (data := scratch.result()) is not None:
            looked, torn = True, _fault(data)
    seen = finished(scratch, runner, began, began + limit_s - time.monotonic())
    return replace(seen, limit_s=limit_s, phase_s=phase_s, torn=torn)


def _fault(data: bytes) -> str | None:
    """What keeps a result.json from being read."""
    try:
        strictjson.loads(data)
    except strictjson.StrictJSONError as exc:
        return f"{len(data)} bytes: {exc}"
    return None


def run_stop(bench: Bench, step: StopStep) -> Outcome:
    """Run it to be stopped."""
    began = time.monotonic()
    try:
        seen = _stopped(bench, step, bench.module.stop_grace_s)
    except StartRefused:
        seen = None
    checks = judge_stop(step.title, bench.module.stop_grace_s, seen)
    checks += judge_stop_result(bench.module, step.golden, bench.first.digest, seen, bench.schema)
    return Outcome(timed(checks, time.monotonic() - began))


def run_terminated(bench: Bench, step: TerminateStep) -> Outcome:
    """Run it to be stopped as an agent does it, with SIGTERM right behind the stop."""
    began = time.monotonic()
    try:
        seen = _stopped(bench, step, min(bench.module.stop_grace_s, TERMINATED_S), terminate=True)
    except StartRefused:
        seen = None
    return Outcome(timed([judge_terminated(step.title, seen)], time.monotonic() - began))


def _stopped(bench: Bench, step: StopStep | TerminateStep, grace_s: float, *, terminate: bool = False) -> StopSeen:
    began = time.monotonic()
    with bench.run(step.task) as (scratch, runner):
        if not first_phase(scratch, runner, step.task.stage.timeout_s):
            ended = runner.wait(0.0)
            code = None if ended is None else ended.code
            words = runner.stderr_tail()
            return StopSeen("no_phase", grace_s, code=code, lasted_s=lasted(runner, began), stderr=words)
        return stop(scratch, runner, grace_s, began, terminate=terminate)
