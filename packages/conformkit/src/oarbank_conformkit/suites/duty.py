"""Give a running task a duty and watch it: its reports, the kit's own measure, a stop while it holds.

The order is the agent's: first phase, document, nudge. The window opens a second after the nudge and closes after the
spec's time; a first report may come a little later. Decides nothing; see `judge.duty`.
"""

from __future__ import annotations

import time
from dataclasses import replace

from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import Check, check, timed
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.judge.duty import REPORT_WAIT_S, SETTLE_S, judge_duty, limit, used_reports
from oarbank_conformkit.measure import Measure
from oarbank_conformkit.plan import DutyStep
from oarbank_conformkit.suites.bench import Bench, first_phase
from oarbank_conformkit.suites.stop import lasted, stop
from oarbank_conformkit.workdir import BadFixture, Scratch
from oarbank_sdk import strictjson
from oarbank_sdk.events import DutyReport, ReportError, complete_lines, duty_report, events

STEP_S = 0.05
"""How often the kit looks up while a window runs; an end of the runner wakes it at once."""

LIVE_S = 0.25
"""How often a person is told."""


def run(bench: Bench, step: DutyStep) -> tuple[list[Check], DutySeen | None]:
    """Return the checks of one duty spec, and what they rest on where the task was started."""
    began = time.monotonic()
    bench.live(f"{step.title}: waits for the first phase")
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = _watch(bench, step, scratch, runner, began)
    except StartRefused as exc:
        seen = DutySeen(refused=str(exc))
    except BadFixture as exc:
        return [check("runner", "fixture.entry", f"duty spec #{step.spec.index}: fixture", "fail", str(exc))], None
    checks = judge_duty(step.spec, seen, cancellable=bench.module.cancellable)
    return list(timed(checks, time.monotonic() - began)), seen


def _watch(bench: Bench, step: DutyStep, scratch: Scratch, runner: RunnerProcess, began: float) -> DutySeen:
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
        seen = replace(_measure(bench, step, scratch, runner, measure), phase_s=phase_s, limit_s=limit_s)
    finally:
        measure.stop()
    ended = runner.wait(0.0)
    if seen.ended_s is not None:
        code = None if ended is None else ended.code
        return replace(seen, code=code, stderr=_last_words(runner), failure=scratch.failure())
    if bench.module.cancellable:
        bench.live(f"{step.title}: stop")
        seen = replace(seen, stop=stop(scratch, runner, bench.module.stop_grace_s, began))
    return seen


def _last_words(runner: RunnerProcess) -> str:
    runner.close()
    return runner.stderr_tail()


def _measure(bench: Bench, step: DutyStep, scratch: Scratch, runner: RunnerProcess, measure: Measure) -> DutySeen:
    """Set the duty and measure; the reports are read before the stop, which cuts the last one short."""
    offset = scratch.events_size()
    clocks = time.time() - time.monotonic()
    written_wall = time.time()
    scratch.change_control({"gpu_duty": step.spec.duty})
    runner.nudge()
    nudged, nudged_wall = time.monotonic(), time.time()
    bench.live(f"{step.title}: duty {step.spec.duty:g} is set")
    opens = nudged + SETTLE_S
    closes = opens + step.spec.window_s
    if not _sleep(runner, opens, measure):
        return _ended_early(runner, nudged)
    measure.start()
    while time.monotonic() < closes:
        _tell(bench, step, measure, opens)
        if not _sleep(runner, min(closes, time.monotonic() + LIVE_S), measure):
            return _ended_early(runner, nudged)
    cpu, gpu, gpu_unknown = measure.end()
    seen = DutySeen(
        written_wall=written_wall,
        nudged_wall=nudged_wall,
        nudged=nudged,
        cpu=cpu,
        gpu=gpu,
        gpu_unknown=gpu_unknown,
    )
    seen = _first_report(bench, step, scratch, runner, seen, offset)
    return replace(seen, clock_step_s=time.time() - time.monotonic() - clocks)


def _sleep(runner: RunnerProcess, until: float, measure: Measure) -> bool:
    """Measure until a moment; False when the runner ended."""
    while (now := time.monotonic()) < until:
        if runner.wait(min(until - now, STEP_S)) is not None:
            return False
        measure.step()
    return True


def _ended_early(runner: RunnerProcess, nudged: float) -> DutySeen:
    ended = runner.wait(0.0)
    ended_s = max((time.monotonic() if ended is None else ended.at) - nudged, 0.0)
    return DutySeen(nudged=nudged, ended_s=ended_s)


def _tell(bench: Bench, step: DutyStep, measure: Measure, opens: float) -> None:
    held = measure.held()
    now = "" if held is None else f", held {held:.2f} of at most {limit(step.spec.duty):g}"
    bench.live(f"{step.title}: {time.monotonic() - opens:.1f} of {step.spec.window_s:g} s{now}")


def _first_report(
    bench: Bench, step: DutyStep, scratch: Scratch, runner: RunnerProcess, seen: DutySeen, offset: int
) -> DutySeen:
    """Read the reports; without one that can be judged, wait for it."""
    give_up = time.monotonic() + REPORT_WAIT_S
    while True:
        reports, unusable = _reports(scratch.events(offset))
        seen = replace(seen, reports=tuple(reports), unusable=tuple(unusable))
        if used_reports(seen) or unusable or time.monotonic() >= give_up:
            return seen
        bench.live(f"{step.title}: waits for the first report")
        if runner.wait(STEP_S) is not None:
            reports, unusable = _reports(scratch.events(offset))
            return replace(seen, reports=tuple(reports), unusable=tuple(unusable))


def _reports(data: bytes) -> tuple[list[DutyReport], list[str]]:
    """The reports in complete lines, and the reasons of those that are none."""
    reports: list[DutyReport] = []
    unusable: list[str] = []
    for line in complete_lines(data)[0]:
        found = events([line])
        if not found and b'"gpu_duty"' in line:
            unusable.append(_no_json(line))
        try:
            reports += [report for event in found if (report := duty_report(event)) is not None]
        except ReportError as exc:
            unusable.append(str(exc))
    return reports, unusable


def _no_json(line: bytes) -> str:
    """Why a line that speaks of gpu_duty is no event; readers skip such a line, and a proof cannot rest on it."""
    try:
        strictjson.loads(line)
    except strictjson.StrictJSONError as exc:
        return f"gpu_duty event: {exc}"
    return "gpu_duty event: must be a JSON object; found another value"
