"""Run a golden: once for its digest, once more under another locale, and once to be stopped."""

from __future__ import annotations

import time
from collections.abc import Generator

from oarbank_agent_check.jobs.environment import LOCALES
from oarbank_agent_check.jobs.runner_process import StartRefused
from oarbank_conformkit.checks import Check, check, timed
from oarbank_conformkit.evidence import RunSeen, StopSeen
from oarbank_conformkit.judge.run import crashed, judge_golden, judge_repeat
from oarbank_conformkit.judge.stop import judge_stop, judge_stop_result
from oarbank_conformkit.plan import GoldenStep
from oarbank_conformkit.suites.bench import Bench, finished, first_phase
from oarbank_conformkit.suites.stop import lasted, stop
from oarbank_conformkit.workdir import BadFixture


def run(bench: Bench, step: GoldenStep) -> Generator[Check, None, str | None]:
    """Give the golden's checks, run by run; at the end, why no other step can run, or None."""
    try:
        return (yield from _runs(bench, step))
    except BadFixture as exc:
        yield check("runner", "fixture.entry", f"{step.title}: fixture", "fail", str(exc))
        return None


def _runs(bench: Bench, step: GoldenStep) -> Generator[Check, None, str | None]:
    bench.live(f"{step.title}: first run")
    began = time.monotonic()
    first = _play(bench, step, LOCALES[0])
    checks, digest = judge_golden(bench.module, step.golden, first)
    yield from timed(checks, time.monotonic() - began)
    if crashed(first):
        return f"{step.title} ended before the runner came to work"
    if step.repeat:
        bench.live(f"{step.title}: second run, {LOCALES[1]}")
        began = time.monotonic()
        second = None if digest is None else _play(bench, step, LOCALES[1])
        again = judge_repeat(bench.module, step.golden, digest, second, LOCALES[1])
        yield from timed([again], time.monotonic() - began)
    if step.stop:
        bench.live(f"{step.title}: stop")
        began = time.monotonic()
        seen = _stopped(bench, step)
        checks = judge_stop(step.title, bench.module.stop_grace_s, seen)
        checks += judge_stop_result(bench.module, step.golden, digest, seen)
        yield from timed(checks, time.monotonic() - began)
    return None


def _play(bench: Bench, step: GoldenStep, locale: str) -> RunSeen:
    try:
        began = time.monotonic()
        with bench.run(step.task, locale) as (scratch, runner):
            return finished(scratch, runner, began, step.task.stage.timeout_s)
    except StartRefused as exc:
        return RunSeen(refused=str(exc))


def _stopped(bench: Bench, step: GoldenStep) -> StopSeen:
    began = time.monotonic()
    with bench.run(step.task) as (scratch, runner):
        if not first_phase(scratch, runner, step.task.stage.timeout_s):
            ended = runner.wait(0.0)
            code = None if ended is None else ended.code
            words = runner.stderr_tail()
            return StopSeen(
                "no_phase", bench.module.stop_grace_s, code=code, lasted_s=lasted(runner, began), stderr=words
            )
        return stop(scratch, runner, bench.module.stop_grace_s, began)
