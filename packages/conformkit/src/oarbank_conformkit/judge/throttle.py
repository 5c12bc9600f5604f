"""Judge how many processors a runner works on under `threads` 1, and after that is lifted. Pure.

Waiting for a processor counts as working on one, so a busy machine changes nothing; where the system does not tell
waits, little work is not held against a runner. One that works on one processor anyway proves nothing: a skip.
"""

from __future__ import annotations

from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import ThrottleSeen

ONE = 1.15
"""Processors that a runner with one compute thread may keep busy: it reads, writes and reports beside it."""

LEAST_S = 0.1
"""Shortest time that says on how many processors a runner works."""


def several(used: float) -> bool:
    """Say whether a runner used more than one processor."""
    return used > ONE


def judge_throttle(title: str, cpus: int, seen: ThrottleSeen) -> list[Check]:
    """Return the two checks; `cpus` is how many processors this host has."""
    names = {
        "throttle.threads": f"{title}: at most one processor under threads 1",
        "throttle.lifted": f"{title}: more again without it",
    }
    if (none := _nothing(cpus, seen)) is not None:
        return [_check("throttle.threads", names, *none)]
    return [_check("throttle.threads", names, *_limited(seen)), _check("throttle.lifted", names, *_lifted(seen))]


def _check(rule: str, names: dict[str, str], status: Status, detail: str) -> Check:
    return check("runner", rule, names[rule], status, detail)


def _nothing(cpus: int, seen: ThrottleSeen) -> tuple[Status, str] | None:
    """Why there is nothing to judge."""
    if seen.refused is not None:
        return "unknown", f"could not be started: {seen.refused}"
    if cpus < 2:
        return "skip", "this host has one processor"
    if seen.unread:
        return "unknown", "its processor time cannot be read here"
    if seen.before is None or seen.before_s < LEAST_S:
        return "unknown", f"it ended after {seen.ended_s or 0.0:.1f} s. List a duty spec, whose task runs longer"
    if several(seen.before):
        return None
    if not seen.waits_count and seen.before < 1.0 / ONE:
        return "unknown", f"it got {seen.before:.2f} of a processor, and this system does not tell what it waited for"
    return "skip", f"it uses one processor anyway: {seen.before:.2f}"


def _limited(seen: ThrottleSeen) -> tuple[Status, str]:
    if seen.limited is None:
        return "unknown", f"it ended after {seen.ended_s or 0.0:.1f} s. List a duty spec, whose task runs longer"
    figures = f"{seen.before or 0.0:.2f} processors before, {seen.limited:.2f} under threads 1"
    if several(seen.limited):
        return "fail", f"must keep to {ONE} at most, {seen.limit_s:g} s after the nudge; found {figures}"
    return "pass", figures


def _lifted(seen: ThrottleSeen) -> tuple[Status, str]:
    if seen.lifted is None:
        return "unknown", "it ended before the limit was lifted. List a duty spec, whose task runs longer"
    if several(seen.lifted):
        return "pass", f"{seen.lifted:.2f} processors"
    if not seen.waits_count:
        return "unknown", f"{seen.lifted:.2f} processors, and this system does not tell what it waited for"
    return "fail", f"must use more than {ONE} processors again, as before; found {seen.lifted:.2f}"
