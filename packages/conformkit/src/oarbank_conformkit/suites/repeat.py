"""Run a golden a second time where everything around it differs, and watch what it leaves where.

Another locale, another place whose path has spaces, a copy of the bundle, one processor, and nudges without a change
from before its first instruction to its first phase, and again at its end: none of it may change anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from oarbank_agent_check.jobs.environment import LOCALES
from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence import RepeatSeen, RunSeen
from oarbank_conformkit.judge.repeat import BESIDE, HELD_OPEN, IN_BUNDLE, judge_repeat
from oarbank_conformkit.open_files import OpenFiles
from oarbank_conformkit.steps import RepeatStep
from oarbank_conformkit.suites.bench import Bench, Setting, can_pin, finished
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import Scratch

LOOK_S = 0.02
"""How often it is nudged while it starts or ends, and its open files are looked at."""

NUDGES = 500
"""How often at most; a runner that writes no phase is nudged from its start to its end."""

SETTING = Setting(locale=LOCALES[1], name="oarbank conform 2", copy=True, one_cpu=True)


def run(bench: Bench, step: RepeatStep) -> Outcome:
    """Run it again and compare with the first run."""
    began = time.monotonic()
    try:
        with bench.run(step.task, SETTING) as (scratch, runner):
            seen = _watched(bench, step, scratch, runner)
    except StartRefused as exc:
        seen = RepeatSeen(RunSeen(refused=str(exc)))
    checks = judge_repeat(bench.module, step.golden, bench.first.digest, seen, exact=step.exact)
    return Outcome(timed(checks, time.monotonic() - began))


def _watched(bench: Bench, step: RepeatStep, scratch: Scratch, runner: RunnerProcess) -> RepeatSeen:
    began, limit_s = time.monotonic(), step.task.stage.timeout_s
    places = [scratch.workdir, scratch.data]
    files = OpenFiles([*places, *([] if scratch.copied is None else [scratch.copied])])
    tree = _tree(runner)
    runner.nudge()  # at once: a fast runner has its phase before the first look
    nudges = 1
    while time.monotonic() < began + limit_s:
        starting, ending = not scratch.has_phase(), scratch.result() is not None
        if (starting or ending) and nudges < NUDGES:
            runner.nudge()
            nudges += 1
        if runner.wait(LOOK_S) is not None:
            break
        files.look([runner.pid] if tree is None else tree.pids())
    seen = finished(scratch, runner, began, max(began + limit_s - time.monotonic(), 0.0))
    secrets = bench.secrets.get(step.task.stage.name, {})
    return RepeatSeen(
        run=seen,
        differs=_differs(scratch),
        nudges=nudges,
        strays=(*scratch.strays(), *sorted(files.seen)),
        watched=_watched_places(files, scratch),
        unwatched=tuple(_unwatched(files, scratch)),
        leaks=_leaks(scratch, seen, secrets),
        secrets=tuple(secrets),
    )


def _tree(runner: RunnerProcess) -> ProcessTree | None:
    try:
        return ProcessTree(runner.pid, adopted=runner.adopted)
    except (NoSuchProcess, UnreadableProcess):
        return None


def _differs(scratch: Scratch) -> tuple[str, ...]:
    told = (LOCALES[1], "a path with spaces")
    return (*told, "one processor") if can_pin() else told


def _watched_places(files: OpenFiles, scratch: Scratch) -> tuple[str, ...]:
    bundle = () if scratch.copied is None else (IN_BUNDLE,)
    return (*bundle, BESIDE, *((HELD_OPEN,) if files.looks else ()))


def _unwatched(files: OpenFiles, scratch: Scratch) -> Iterator[str]:
    if scratch.copied is None:
        yield f"{IN_BUNDLE} (it is too big to be copied)"
    if not files.looks:
        why = "it ended before a look, or may not be looked at" if files.known else "this system does not show those"
        yield f"{HELD_OPEN} ({why})"


def _leaks(scratch: Scratch, seen: RunSeen, secrets: Mapping[str, str]) -> tuple[str, ...]:
    if not secrets:
        return ()
    streams = [("stdout", seen.stdout), ("stderr", seen.stderr.encode())]
    printed = [name for name, text in streams if any(secret.encode() in text for secret in secrets.values())]
    return (*printed, *scratch.holding(secrets))
