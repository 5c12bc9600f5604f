"""Pause a golden, watch that it does nothing, resume it, and see that nothing came of it.

The order is the agent's: first phase, document, nudge. In the middle of the window a newer document comes that pauses
still, which is no reason to work. What it means is decided in `judge.pause`.
"""

from __future__ import annotations

import time
from dataclasses import replace

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence import PauseSeen
from oarbank_conformkit.judge.pause import QUIET_STEPS, idle, judge_pause, off
from oarbank_conformkit.steps import PauseStep
from oarbank_conformkit.suites.bench import Bench, finished, first_phase
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.suites.stop import lasted
from oarbank_conformkit.work_meter import Step, WorkMeter
from oarbank_conformkit.workdir import Scratch

PATIENCE = 3
"""How many times its limit a runner that a busy machine keeps from its processor is waited for."""

RESUMED_S = 10.0
"""How long a resumed run may take beyond three times the first run's, within its stage's time."""


def run(bench: Bench, step: PauseStep) -> Outcome:
    """Pause it."""
    began = time.monotonic()
    bench.live(f"{step.title}: pause")
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = _watched(bench, step, scratch, runner, began)
    except StartRefused as exc:
        seen = PauseSeen(bench.limits.settle_s, refused=str(exc))
    checks = judge_pause(bench.module, step.golden, bench.first.digest, seen, exact=step.exact)
    return Outcome(timed(checks, time.monotonic() - began))


def _watched(bench: Bench, step: PauseStep, scratch: Scratch, runner: RunnerProcess, began: float) -> PauseSeen:
    seen = PauseSeen(bench.limits.settle_s, bench.limits.window_s)
    if not first_phase(scratch, runner, step.task.stage.timeout_s) or runner.wait(0.0) is not None:
        return replace(seen, lasted_s=lasted(runner, began))
    meter = WorkMeter(runner)
    try:
        scratch.change_control({"pause": True})
        runner.nudge()
        nudged = time.monotonic()
        seen = _settled(meter, seen, nudged)
        if seen.ended_s is None and seen.quiet_s is not None:
            seen = _window(meter, scratch, runner, seen, nudged)
    finally:
        meter.stop()
    if seen.ended_s is not None:
        return seen
    scratch.change_control({"pause": False})
    runner.nudge()
    limit_s = min(step.task.stage.timeout_s, 3 * bench.first.took_s + RESUMED_S)
    return replace(seen, run=finished(scratch, runner, time.monotonic(), limit_s))


def _settled(meter: WorkMeter, seen: PauseSeen, nudged: float) -> PauseSeen:
    """Wait until it has done nothing for some steps, or the limit has passed, a busy machine's part of it aside."""
    quiet, waited_s = 0, 0.0
    since = nudged
    while True:
        meter.begin_gpu()
        step = meter.step()
        now = time.monotonic()
        if step.ended is not None:
            return replace(seen, ended_s=max(step.ended.at - nudged, 0.0), waited_s=waited_s)
        waited_s += step.wait_s
        quiet = quiet + 1 if idle(step.cpu_s, step.wait_s, step.dt_s) and off(meter.gpu()) else 0
        since = now if quiet == 0 else since
        if quiet >= QUIET_STEPS:
            return replace(seen, quiet_s=since - nudged, waited_s=waited_s)
        had_s = now - nudged - waited_s
        if quiet == 0 and (had_s > seen.limit_s or now - nudged > PATIENCE * seen.limit_s):
            return replace(seen, busy=step.cpu_s / step.dt_s, watched_s=now - nudged, waited_s=waited_s)


def _window(meter: WorkMeter, scratch: Scratch, runner: RunnerProcess, seen: PauseSeen, nudged: float) -> PauseSeen:
    before = _stand(scratch)
    meter.begin_gpu()
    opened = time.monotonic()
    cpu_s, wanted_s, woke_s, again = 0.0, 0.0, None, False
    step: Step | None = None
    while (now := time.monotonic()) < opened + seen.window_s:
        if not again and now >= opened + seen.window_s / 2:
            again = True
            scratch.change_control({"pause": True, "reason": "still"})
            runner.nudge()
        step = meter.step()
        cpu_s += step.cpu_s
        wanted_s += step.wait_s
        if woke_s is None and not idle(step.cpu_s, 0.0, step.dt_s):
            woke_s = now - nudged
        if step.ended is not None:
            return replace(seen, ended_s=max(step.ended.at - nudged, 0.0))
    after = _stand(scratch)
    return replace(
        seen,
        window_s=time.monotonic() - opened,
        cpu_s=cpu_s if meter.known else None,
        wanted_s=wanted_s,
        woke_s=woke_s,
        gpu=meter.gpu(),
        moved=tuple(name for name in after if after[name] != before[name]),
    )


def _stand(scratch: Scratch) -> dict[str, object]:
    """What must not move while it is held."""
    return {"phase": scratch.phase(), "result.json": scratch.result(), "failure.json": scratch.failure()}
