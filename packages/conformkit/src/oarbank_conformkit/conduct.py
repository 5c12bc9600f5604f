"""Carry out a plan: each check handed on in the plan's order, as soon as it is known.

Steps of one wave run side by side, two at a time; a step that measures runs alone. The one fence of the kit: what
breaks in the kit itself (`HostFault`, or a fault nobody foresaw) makes the step it broke `unknown` with the reason, so
nothing is left out of the verdict, nothing is blamed on the runner, and no suite hides another. A runner that never
comes to work is told once: the steps behind it are `unknown` with one line each.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from oarbank_agent_check.jobs.coordinator import coordinator
from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_conformkit.bundle import Bundle
from oarbank_conformkit.checks import Check, check, said_once
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.manifest import judge_bundle
from oarbank_conformkit.limits import USUAL, Limits
from oarbank_conformkit.plan import Item, plan
from oarbank_conformkit.report import DutyRun, Report, strictly
from oarbank_conformkit.rules import chosen
from oarbank_conformkit.secrets_granted import by_stage
from oarbank_conformkit.steps import (
    DoctorStep,
    DutyStep,
    GoldenStep,
    OfGolden,
    PauseStep,
    ProtocolStep,
    RepeatStep,
    RetryStep,
    SpecStep,
    Step,
    StopStep,
    TerminateStep,
    ThrottleStep,
    wanted,
)
from oarbank_conformkit.suites import doctor, duty, golden, pause, protocol, repeat, retry, spec, throttle
from oarbank_conformkit.suites.bench import Bench, Live
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import BadFixture

NOT_HERE = "conform: starting a runner needs Linux or macOS; found Windows. Use --no-runner here."

SIDE_BY_SIDE = 2
"""Steps of a wave that run at once; fewer on a host with one processor."""

ALWAYS_SAID = frozenset({"manifest.valid", "fixture.file", "fixture.entry"})
"""Rules whose failure is told whatever was chosen: it keeps the chosen ones from being judged."""


def conduct(
    bundle: Bundle,
    host: Host,
    *,
    kit: str,
    runner: bool = True,
    strict: bool = False,
    only: Sequence[str] = (),
    data: Path | None = None,
    limits: Limits = USUAL,
    tell: Callable[[Check], None] = lambda one: None,
    live: Live = lambda text: None,
) -> Report:
    """Judge a module and return the report; `tell` gets each check when it is known.

    `only` holds patterns of rule ids or suites, none for everything; `data` is a folder whose contents every fresh data
    directory holds. Raises `UsageError` for a plan that would run nothing, or a choice that selects nothing.
    """
    started, began = time.time(), time.monotonic()
    rules = _chosen(only)
    duty_runs: list[DutyRun] = []
    checks: list[Check] = []
    shown: set[str] = set()
    items = _items(bundle, host, rules, runner=runner)
    known = [one for one in judge_bundle(bundle) if _is_told(one, rules)]
    if not known and not items:
        raise UsageError(f"--only {' '.join(only)}: must select something of this module; found nothing.")
    for one in known:
        _note(one, checks, tell, strict=strict)
    with closing(
        _run(bundle, host, items, duty_runs, live, limits, data)
    ) as judged:  # it ends what runs, come what may
        for one in judged:
            if _is_told(one, rules):
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
        only=tuple(only),
    )


def _chosen(only: Sequence[str]) -> frozenset[str]:
    try:
        return chosen(only)
    except KeyError as exc:
        raise UsageError(f"--only {exc.args[0]}: must match a rule or a suite; see --list. Found none.") from None


def _is_told(one: Check, rules: frozenset[str]) -> bool:
    return one.rule in rules or (one.rule in ALWAYS_SAID and one.status == "fail")


def _note(one: Check, checks: list[Check], tell: Callable[[Check], None], *, strict: bool) -> None:
    kept = strictly(one) if strict else one
    checks.append(kept)
    tell(kept)


def _items(bundle: Bundle, host: Host, rules: frozenset[str], *, runner: bool) -> tuple[Item, ...]:
    if bundle.module is None:
        return ()
    goldens = tuple(one for one in bundle.goldens if isinstance(one, Golden))
    asked = coordinator(bundle.manifest)
    items = plan(bundle.module, goldens, bundle.fixtures, host, coordinator=asked, runner=runner)
    steps = wanted(tuple(item for item in items if not isinstance(item, Check)), rules)
    return tuple(item for item in items if (_is_told(item, rules) if isinstance(item, Check) else item in steps))


# ---- the steps ------------------------------------------------------------------------------------------


def _run(
    bundle: Bundle,
    host: Host,
    items: tuple[Item, ...],
    duty_runs: list[DutyRun],
    live: Live,
    limits: Limits,
    data: Path | None,
) -> Generator[Check]:
    if bundle.module is None:
        return
    bench = Bench(
        bundle.module,
        host,
        Path(bundle.path),
        bundle.fixtures,
        live,
        limits,
        data,
        by_stage(bundle.manifest, bundle.fixtures, lambda: f"canary-{secrets.token_hex(16)}"),
        schema=bundle.result_schema,
    )
    absent = None if os.name == "posix" else NOT_HERE
    absent_golden: str | None = None
    workers = ThreadPoolExecutor(min(SIDE_BY_SIDE, host.cpus), thread_name_prefix="conform")
    try:
        for wave in _waves(items):
            for item, outcome in _results(bench, workers, wave, absent, absent_golden):
                if isinstance(item, DutyStep) and outcome.duty is not None:
                    duty_runs.append(DutyRun(item.spec, outcome.duty))
                yield from outcome.checks
                absent = absent or outcome.absent
                absent_golden = absent_golden or outcome.absent_golden
    finally:
        bench.end()
        workers.shutdown(wait=True, cancel_futures=True)


def _waves(items: tuple[Item, ...]) -> Iterator[list[Item]]:
    """Cut a plan into what runs side by side; a check that is decided already goes with what stands before it."""
    wave: list[Item] = []
    turn: int | None = None
    for item in items:
        if not isinstance(item, Check):
            if wave and (item.wave is None or item.wave != turn):
                yield wave
                wave = []
            turn = item.wave
        wave.append(item)
    if wave:
        yield wave


def _results(
    bench: Bench, workers: ThreadPoolExecutor, wave: list[Item], absent: str | None, absent_golden: str | None
) -> Iterator[tuple[Item, Outcome]]:
    """Give each item of a wave with its outcome, in order; all of them run at once as far as there are workers."""
    running: list[tuple[Item, Outcome | Future[Outcome]]] = []
    for item in wave:
        why = absent or (absent_golden if isinstance(item, OfGolden) else None)
        if isinstance(item, Check):
            running.append((item, Outcome([item])))
        elif why is not None:
            running.append((item, Outcome([_unknown(item, f"not run: {why}")])))
        else:
            running.append((item, workers.submit(_judged, bench, item)))
    for item, outcome in running:
        if isinstance(outcome, Future):
            # Told here and not by the steps: one thread alone writes to the terminal while several run.
            bench.live("; ".join(dict.fromkeys(_under_way(running))))
            yield item, outcome.result()
        else:
            yield item, outcome


def _under_way(running: list[tuple[Item, Outcome | Future[Outcome]]]) -> Iterator[str]:
    for item, outcome in running:
        if isinstance(outcome, Future) and not outcome.done() and not isinstance(item, Check):
            yield item.title


def _judged(bench: Bench, step: Step) -> Outcome:
    """Run a step; a fault of the kit's own is an answer too."""
    try:
        return _outcome(bench, step)
    except BadFixture as exc:  # whose author has been told by the step that it is in the fixtures for
        return Outcome([_unknown(step, f"not run: {exc}")])
    except HostFault as exc:
        why = str(exc)
    except Exception as exc:  # a fault of ours that nobody foresaw: named, and never the runner's
        why = f"the kit itself failed: {type(exc).__name__}: {str(exc)[:160]}"
    return Outcome([_unknown(step, f"not judged, through no fault of the runner: {why}")])


def _outcome(bench: Bench, step: Step) -> Outcome:
    match step:
        case DoctorStep():
            return doctor.run(bench, step)
        case ProtocolStep():
            return protocol.run(bench, step)
        case GoldenStep():
            return golden.run(bench, step)
        case RepeatStep():
            return repeat.run(bench, step)
        case RetryStep():
            return retry.run(bench, step)
        case TerminateStep():
            return golden.run_terminated(bench, step)
        case StopStep():
            return golden.run_stop(bench, step)
        case PauseStep():
            return pause.run(bench, step)
        case ThrottleStep():
            return throttle.run(bench, step)
        case SpecStep():
            return spec.run(bench, step)
        case DutyStep():
            checks, seen = duty.run(bench, step)
            return Outcome(checks, duty=seen)


def _unknown(step: Step, why: str) -> Check:
    return check(step.suite, step.primary, f"{step.title}: is judged", "unknown", why)
