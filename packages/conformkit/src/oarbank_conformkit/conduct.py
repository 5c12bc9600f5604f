"""Carry out a plan: step by step, one runner at a time, each check handed on as soon as it is known.

The one fence of the kit. What breaks in the kit itself (`HostFault`, or a fault nobody foresaw) ends the run of the
plan; the steps that were not judged become `unknown` with the reason, so nothing is left out of the verdict and
nothing is blamed on the runner. A runner that never comes to work is told once: the steps behind it are `unknown`
with one line each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.host import Host
from oarbank_conformkit.bundle import Bundle
from oarbank_conformkit.checks import Check, check, said_once
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.manifest import judge_bundle
from oarbank_conformkit.plan import DoctorStep, DutyStep, GoldenStep, Item, Step, plan
from oarbank_conformkit.report import DutyRun, Report, strictly
from oarbank_conformkit.suites import doctor, duty, golden
from oarbank_conformkit.suites.bench import Bench, Live

NOT_HERE = "conform: starting a runner needs Linux or macOS; found Windows. Use --no-runner here."


def conduct(
    bundle: Bundle,
    host: Host,
    *,
    kit: str,
    runner: bool = True,
    strict: bool = False,
    tell: Callable[[Check], None] = lambda one: None,
    live: Live = lambda text: None,
) -> Report:
    """Judge a module and return the report; `tell` gets each check when it is known.

    Raises `UsageError` for a plan that would run nothing.
    """
    started, began = time.time(), time.monotonic()
    duty_runs: list[DutyRun] = []
    checks: list[Check] = []
    shown: set[str] = set()
    items = _items(bundle, host, runner=runner)
    for one in [*judge_bundle(bundle)]:
        _note(one, checks, tell, strict=strict)
    for one in _run(bundle, host, items, duty_runs, live):
        _note(said_once(one, shown), checks, tell, strict=strict)
    return Report(
        module_id=bundle.module.id if bundle.module else None,
        module_version=bundle.module.version if bundle.module else None,
        directory=bundle.shown,
        kit=kit,
        host=host,
        started=started,
        took_s=time.monotonic() - began,
        checks=tuple(checks),
        duty_runs=tuple(duty_runs),
        runner=runner,
        throttles=bundle.module is not None and bundle.module.throttles,
    )


def _note(one: Check, checks: list[Check], tell: Callable[[Check], None], *, strict: bool) -> None:
    kept = strictly(one) if strict else one
    checks.append(kept)
    tell(kept)


def _items(bundle: Bundle, host: Host, *, runner: bool) -> tuple[Item, ...]:
    if bundle.module is None:
        return ()
    goldens = tuple(one for one in bundle.goldens if isinstance(one, Golden))
    return plan(bundle.module, goldens, bundle.fixtures, host, runner=runner)


def _run(bundle: Bundle, host: Host, items: tuple[Item, ...], duty_runs: list[DutyRun], live: Live) -> Iterator[Check]:
    if bundle.module is None:
        return
    bench = Bench(bundle.module, host, Path(bundle.path), bundle.fixtures, live)
    broken: str | None = None if os.name == "posix" else NOT_HERE
    absent: str | None = None
    for item in items:
        if isinstance(item, Check):
            yield item
        elif broken is not None:
            yield _not_judged(item, broken)
        elif absent is not None:
            yield check("runner", item.primary, f"{item.title}: is judged", "unknown", f"not run: {absent}")
        else:
            try:
                absent = yield from _step(bench, item, duty_runs)
            except HostFault as exc:
                broken = str(exc)
            except Exception as exc:  # a fault of ours that nobody foresaw: named, and never the runner's
                broken = f"the kit itself failed: {type(exc).__name__}: {str(exc)[:160]}"
            if broken is not None:
                yield _not_judged(item, broken)


def _step(bench: Bench, step: Step, duty_runs: list[DutyRun]) -> Generator[Check, None, str | None]:
    """Give a step's checks; at the end, why no other step can run, or None."""
    if isinstance(step, DoctorStep):
        return (yield from doctor.run(bench, step))
    if isinstance(step, GoldenStep):
        return (yield from golden.run(bench, step))
    assert isinstance(step, DutyStep)
    checks, seen = duty.run(bench, step)
    if seen is not None:
        duty_runs.append(DutyRun(step.spec, seen))
    yield from checks
    return None


def _not_judged(step: Step, why: str) -> Check:
    return check(
        "runner",
        step.primary,
        f"{step.title}: is judged",
        "unknown",
        f"not judged, through no fault of the runner: {why}",
    )
