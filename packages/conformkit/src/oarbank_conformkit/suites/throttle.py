"""Give a running task one thread and look how many processors it keeps busy; then take the limit away again.

What it means is decided in `judge.throttle`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence import ThrottleSeen
from oarbank_conformkit.judge.throttle import judge_throttle, several
from oarbank_conformkit.steps import ThrottleStep
from oarbank_conformkit.suites.bench import Bench, first_phase
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.suites.stop import lasted
from oarbank_conformkit.work_meter import Step, WorkMeter
from oarbank_conformkit.workdir import Scratch

FIRST_LOOK_S = 0.5
"""How long it is watched before any limit, to see whether it uses more than one processor at all."""


def run(bench: Bench, step: ThrottleStep) -> Outcome:
    """Throttle it; it is ended afterwards, whatever is left of its task."""
    began = time.monotonic()
    bench.live(step.title)
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = _watched(bench, step, scratch, runner, began)
    except StartRefused as exc:
        seen = ThrottleSeen(bench.limits.settle_s, refused=str(exc))
    return Outcome(timed(judge_throttle(step.title, bench.host.cpus, seen), time.monotonic() - began))


def _watched(bench: Bench, step: ThrottleStep, scratch: Scratch, runner: RunnerProcess, began: float) -> ThrottleSeen:
    seen = ThrottleSeen(bench.limits.settle_s)
    if bench.host.cpus < 2:
        return seen
    if not first_phase(scratch, runner, step.task.stage.timeout_s):
        return replace(seen, ended_s=lasted(runner, began))
    meter = WorkMeter(runner)
    try:
        if not meter.known:
            return replace(seen, unread=True)
        before = _mean(meter, FIRST_LOOK_S)
        seen = replace(seen, before=before.used, before_s=before.length_s, waits_count=before.waits_count)
        if before.ended or not several(before.used):
            return replace(seen, ended_s=lasted(runner, began) if before.ended else None)
        scratch.change_control({"threads": 1})
        runner.nudge()
        _until(meter, bench.limits.settle_s, lambda used: not several(used))
        if (limited := _mean(meter, bench.limits.window_s)).ended:
            return replace(seen, ended_s=lasted(runner, began))
        scratch.replace_control({})
        runner.nudge()
        _until(meter, bench.limits.settle_s, several)
        seen = replace(seen, limited=limited.used)
        if (lifted := _mean(meter, bench.limits.window_s)).ended:
            return replace(seen, ended_s=lasted(runner, began))
        return replace(seen, lifted=lifted.used)
    finally:
        meter.stop()


@dataclass(frozen=True, slots=True)
class _Mean:
    """Processors that it worked on or waited for, over `length_s`; `ended`: cut short by its end."""

    used: float
    length_s: float
    ended: bool
    waits_count: bool


def _mean(meter: WorkMeter, length_s: float) -> _Mean:
    took, wanted_s, waits_count, ended = 0.0, 0.0, True, False
    while took < length_s and not ended:
        step = meter.step()
        ended = step.ended is not None
        if not ended:
            took, wanted_s = took + step.dt_s, wanted_s + _wanted(step)
            waits_count = waits_count and step.want_s is not None
    return _Mean(wanted_s / (took or 1.0), took, ended, waits_count)


def _wanted(step: Step) -> float:
    return step.cpu_s if step.want_s is None else step.want_s


def _until(meter: WorkMeter, limit_s: float, holds: Callable[[float], bool]) -> None:
    """Wait until three steps in a row are as wanted, or the limit has passed."""
    give_up, row = time.monotonic() + limit_s, 0
    while row < 3 and time.monotonic() < give_up:
        step = meter.step()
        if step.ended is not None:
            return
        row = row + 1 if holds(_wanted(step) / step.dt_s) else 0
