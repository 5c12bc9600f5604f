"""Judge a pause: held in time, kept, and without a trace in the result. Pure.

Work is processor or GPU time beyond a trickle. A runner that waited for a processor is not taken for one that rests,
and one that a busy machine kept from its next safe point is not accused.
"""

from __future__ import annotations

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import PauseSeen
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.run import compared, how_it_ended

TRICKLE = 0.2
"""Share of a step of 0.1 s that is no work yet: two ticks of the coarsest clock, or a timer of the runner's."""

QUIET_STEPS = 4
"""Steps in a row without work after which it is held: longer than a busy machine leaves a runner that works."""

HELD_CPU = 0.05
"""Share of one processor that a held runner may use over the window."""

HELD_GPU = 0.05
"""Share of the GPU that a held runner may use over the window, beyond the reading's grain."""


def idle(cpu_s: float, wait_s: float, dt_s: float) -> bool:
    """Say whether a step holds no work: hardly any processor time, and no wait for a processor."""
    return cpu_s <= TRICKLE * dt_s + 1e-9 and wait_s <= TRICKLE * dt_s


def off(gpu: float | None) -> bool:
    """Say whether a share of the GPU is none; one that cannot be read is taken for none, and processor time decides."""
    return gpu is None or gpu <= HELD_GPU


def judge_pause(module: Module, golden: Golden, first: str | None, seen: PauseSeen, *, exact: bool) -> list[Check]:
    """Return the checks of a pause; `first` is the digest of the golden's first run, None for none."""
    title = f"golden {golden.name}"
    names = {
        "pause.held": f"{title}: holds within {seen.limit_s:g} s of a pause",
        "pause.kept": f"{title}: does nothing until the pause is cleared",
        "pause.result": f"{title}: ends as if it had not been paused",
    }
    held = _held(seen)
    kept = _kept(seen) if held[0] == "pass" else ("unknown", "it was not seen to hold")
    answers: dict[str, tuple[Status, str]] = {
        "pause.held": held,
        "pause.kept": kept,
        "pause.result": _result(module, first, seen, exact=exact),
    }
    return [check("runner", rule, names[rule], *answer, _evidence(seen)) for rule, answer in answers.items()]


def _held(seen: PauseSeen) -> tuple[Status, str]:
    if seen.refused is not None:
        return "unknown", f"could not be started: {seen.refused}"
    if seen.lasted_s is not None:
        why = f"it wrote no phase, or ended, in {seen.lasted_s:.1f} s, before it could be paused"
        return "unknown", f"{why}. Write a phase when the work begins, and make the task last a second or more"
    if seen.quiet_s is not None and seen.quiet_s <= seen.limit_s:
        return "pass", f"after {seen.quiet_s:.1f} s; at most {seen.limit_s:g} s are allowed"
    if seen.ended_s is not None and seen.quiet_s is None:
        if seen.ended_s - seen.waited_s > seen.limit_s:
            return "fail", f"must hold within {seen.limit_s:g} s; found it at work to its end at {seen.ended_s:.1f} s"
        why = f"it ended {seen.ended_s:.1f} s after the pause, within the {seen.limit_s:g} s that it has"
        return "unknown", f"{why}. Make the task last {2 * seen.limit_s:g} s or more, if it holds at all"
    after_s = seen.watched_s if seen.quiet_s is None else seen.quiet_s
    late = f"it worked on for {after_s:.1f} s" if seen.quiet_s is None else f"it held after {after_s:.1f} s"
    if after_s - seen.waited_s <= seen.limit_s:
        return "unknown", f"{late}, and a busy machine kept it from a processor for {seen.waited_s:.1f} s of that"
    used = f", in the end with {seen.busy:.2f} of a processor" if seen.quiet_s is None else ""
    return "fail", f"must hold within {seen.limit_s:g} s of the nudge; found that {late}{used}"


def _kept(seen: PauseSeen) -> tuple[Status, str]:
    if seen.ended_s is not None:
        return "fail", f"must wait for a newer document; found that it ended {seen.ended_s:.1f} s after the pause"
    if seen.moved:
        return "fail", f"must leave everything as it is; found another {', '.join(seen.moved)}"
    if not off(seen.gpu):
        return "fail", f"must keep off the GPU; found it busy for {seen.gpu or 0.0:.2f} of {seen.window_s:.1f} s"
    if seen.cpu_s is None:
        return "unknown", "its processor time cannot be read here"
    if seen.cpu_s > HELD_CPU * seen.window_s + 0.02:
        when = "" if seen.woke_s is None else f", from {seen.woke_s:.1f} s after the pause on"
        return "fail", f"must rest; found {seen.cpu_s:.2f} s of processor time in {seen.window_s:.1f} s{when}"
    if seen.cpu_s + seen.wanted_s > HELD_CPU * seen.window_s + 0.02:
        return "unknown", f"it waited {seen.wanted_s:.2f} s for a processor on a busy machine, as if it had work"
    gpu = "" if seen.gpu is None else f", the GPU busy for {seen.gpu:.2f} of it"
    return "pass", f"{seen.cpu_s:.2f} s of processor time in {seen.window_s:.1f} s{gpu}"


def _result(module: Module, first: str | None, seen: PauseSeen, *, exact: bool) -> tuple[Status, str]:
    if seen.run is None:
        return "unknown", "it was not resumed"
    if not exact or first is None:
        if seen.run.exit == 0:
            nothing = "the first run gave nothing to compare with"
            return ("pass", "exit 0") if first is not None else ("unknown", nothing)
        why = f"must exit 0; {how_it_ended(seen.run)}"
        return ("fail", why) if first is not None else ("unknown", why)
    return compared(module, first, seen.run)


def _evidence(seen: PauseSeen) -> dict[str, object]:
    return {
        "held_s": seen.quiet_s,
        "limit_s": seen.limit_s,
        "window_s": round(seen.window_s, 3),
        "cpu_s": seen.cpu_s,
        "gpu": seen.gpu,
        "waited_s": round(seen.waited_s + seen.wanted_s, 3),
    }
