"""Give a running task a duty and watch it: its reports, the kit's own measure, other duties, a stop while it waits.

The order is the agent's: first phase, document, nudge. The window opens a second after the nudge and closes after the
spec's time; a first report may come a little later. Then `duty_changes` gives other duties, the last of them 0, and
the stop finds the runner in an idle without end. Where a busy machine kept the kit from telling, the whole is done
once more. Decides nothing; see `judge.duty`.
"""

from __future__ import annotations

import time
from dataclasses import replace

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import Check, check, timed
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.judge.duty import (
    REPORT_WAIT_S,
    SETTLE_S,
    disturbed,
    judge_duty,
    limit,
    tells_more,
    used_reports,
)
from oarbank_conformkit.measure import Measure
from oarbank_conformkit.steps import DutyStep
from oarbank_conformkit.suites.bench import Bench, first_phase
from oarbank_conformkit.suites.duty_changes import change_duties
from oarbank_conformkit.suites.report_log import ReportLog
from oarbank_conformkit.suites.stop import lasted, stop
from oarbank_conformkit.suites.watch import Watch
from oarbank_conformkit.workdir import BadFixture, Scratch

LIVE_S = 0.25
"""How often a person is told."""


def run(bench: Bench, step: DutyStep) -> tuple[list[Check], DutySeen | None]:
    """Return the checks of one duty spec, and what they rest on where the task was started."""
    began = time.monotonic()
    checks, seen = _once(bench, step)
    if disturbed(checks):
        bench.live(f"{step.title}: the machine was busy; once more")
        again, seen_again = _once(bench, step)
        if tells_more(again, checks):
            checks, seen = again, seen_again
    return list(timed(checks, time.monotonic() - began)), seen


def _once(bench: Bench, step: DutyStep) -> tuple[list[Check], DutySeen | None]:
    bench.live(f"{step.title}: waits for the first phase")
    began = time.monotonic()
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = _see(bench, step, scratch, runner, began)
    except StartRefused as exc:
        seen = DutySeen(refused=str(exc))
    except BadFixture as exc:
        return [check("runner", "fixture.entry", f"duty spec #{step.spec.index}: fixture", "fail", str(exc))], None
    return judge_duty(step.spec, seen, cancellable=bench.module.cancellable), seen


def _see(bench: Bench, step: DutyStep, scratch: Scratch, runner: RunnerProcess, began: float) -> DutySeen:
    limit_s = step.task.stage.timeout_s
    if not first_phase(scratch, runner, limit_s):
        ended = runner.wait(0.0)
        return DutySeen(
            code=None if ended is None else ended.code,
            limit_s=limit_s,
            lasted_s=lasted(runner, began),
            stderr=_last_words(runner),
            failure=scratch.failure(),
        )
    phase_s = time.monotonic() - began
    measure = Measure(runner)
    try:
        watch = Watch(scratch, runner, measure, ReportLog(scratch))
        seen = replace(_measure(bench, step, watch), phase_s=phase_s, limit_s=limit_s)
    finally:
        measure.stop()
    ended = runner.wait(0.0)
    if seen.ended_s is not None or seen.left_s is not None:
        code = None if ended is None else ended.code
        seen = replace(seen, code=code, stderr=_last_words(runner), failure=scratch.failure())
    if seen.ended_s is None and bench.module.cancellable:
        bench.live(f"{step.title}: stop")
        seen = replace(seen, stop=stop(scratch, runner, bench.module.stop_grace_s, began))
    return seen


def _last_words(runner: RunnerProcess) -> str:
    runner.close()
    return runner.stderr_tail()


def _measure(bench: Bench, step: DutyStep, watch: Watch) -> DutySeen:
    """Set the duty and measure; the reports are read before the stop, which cuts the last one short."""
    clocks = time.time() - time.monotonic()
    written_wall = time.time()
    watch.scratch.change_control({"gpu_duty": step.spec.duty})
    watch.runner.nudge()
    nudged, nudged_wall = time.monotonic(), time.time()
    bench.live(f"{step.title}: duty {step.spec.duty:g} is set")
    opens = nudged + SETTLE_S
    closes = opens + step.spec.window_s
    if not watch.until(opens):
        return _ended_early(watch.runner, nudged)
    watch.measure.start()
    while time.monotonic() < closes:
        _tell(bench, step, watch.measure, opens)
        if not watch.until(min(closes, time.monotonic() + LIVE_S)):
            return _ended_early(watch.runner, nudged)
    cpu, gpu, gpu_unknown = watch.measure.end()
    seen = DutySeen(
        written_wall=written_wall,
        nudged_wall=nudged_wall,
        nudged=nudged,
        cpu=cpu,
        gpu=gpu,
        gpu_unknown=gpu_unknown,
    )
    if _first_report(bench, step, watch, seen):
        seen = replace(seen, changes=change_duties(bench, step, watch))
    left = watch.runner.wait(0.0)
    return replace(
        _with_reports(seen, watch.log),
        left_s=None if left is None else max(left.at - closes, 0.0),
        clock_step_s=time.time() - time.monotonic() - clocks,
    )


def _ended_early(runner: RunnerProcess, nudged: float) -> DutySeen:
    ended = runner.wait(0.0)
    ended_s = max((time.monotonic() if ended is None else ended.at) - nudged, 0.0)
    return DutySeen(nudged=nudged, ended_s=ended_s)


def _tell(bench: Bench, step: DutyStep, measure: Measure, opens: float) -> None:
    held = measure.held()
    now = "" if held is None else f", held {held:.2f} of at most {limit(step.spec.duty):g}"
    bench.live(f"{step.title}: {time.monotonic() - opens:.1f} of {step.spec.window_s:g} s{now}")


def _first_report(bench: Bench, step: DutyStep, watch: Watch, seen: DutySeen) -> bool:
    """Wait for a report that can be judged, where there is none yet; False when the runner ended."""
    watch.log.look()

    def enough() -> bool:
        return bool(used_reports(_with_reports(seen, watch.log)) or watch.log.unusable)

    if not enough():
        bench.live(f"{step.title}: waits for the first report")
    return watch.until(time.monotonic() + REPORT_WAIT_S, enough=enough) and watch.runner.wait(0.0) is None


def _with_reports(seen: DutySeen, log: ReportLog) -> DutySeen:
    return replace(
        seen,
        reports=tuple(log.reports),
        absent_wall=tuple(log.absent_wall),
        looked_wall=log.looked_wall,
        unusable=tuple(log.unusable),
    )
