"""Judge a golden's second run, where everything around it differs: its digest, its nudges, what it left where. Pure."""

from __future__ import annotations

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import RepeatSeen, RunSeen
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.run import compared, how_it_ended

SIGUSR1 = {"linux": 10, "darwin": 30}
"""The nudge's number, by the first part of a platform."""


BESIDE, IN_BUNDLE, HELD_OPEN = "beside its workdir", "in its bundle", "in a file that it held open elsewhere"
"""Places in which writes are looked for, as a sentence names them."""


def judge_repeat(module: Module, golden: Golden, first: str | None, seen: RepeatSeen, *, exact: bool) -> list[Check]:
    """Return the checks of the second run; `first` is the first run's digest, None where it gave none."""
    title = f"golden {golden.name}"
    told = [_repeat(module, title, first, seen, exact=exact), _nudges(title, seen), _writes(title, seen)]
    return told + ([_secrets(title, seen)] if seen.secrets else [])


def _repeat(module: Module, title: str, first: str | None, seen: RepeatSeen, *, exact: bool) -> Check:
    name = f"{title}: same digest again ({', '.join(seen.differs)})" if seen.differs else f"{title}: same digest again"
    if not exact:
        return _check("golden.repeat", name, "skip", "the stage's results need not be equal")
    if killed_by_nudge(seen.run):
        return _check("golden.repeat", name, "unknown", "a nudge ended it before it had a result")
    return check("runner", "golden.repeat", name, *compared(module, first, seen.run))


def _nudges(title: str, seen: RepeatSeen) -> Check:
    name = f"{title}: nudges at its start and its end do nothing"
    if killed_by_nudge(seen.run):
        advice = "Leave SIGUSR1 ignored, as you were started, until its handler is installed, and ignore it at the end."
        return _check("nudge.harmless", name, "fail", f"must live on; {how_it_ended(seen.run)}. {advice}")
    if seen.nudges == 0:
        return _check("nudge.harmless", name, "unknown", "it was not nudged")
    return _check("nudge.harmless", name, "pass", f"{seen.nudges} nudges")


def _writes(title: str, seen: RepeatSeen) -> Check:
    name = f"{title}: writes nothing outside its directories"
    if seen.strays:
        more = f" and {len(seen.strays) - 3} more" if len(seen.strays) > 3 else ""
        detail = f"must write to its workdir and OARBANK_MODULE_DATA alone; found {', '.join(seen.strays[:3])}{more}"
        return _check("writes.inside", name, "fail", detail)
    if seen.run.refused is not None:
        return _check("writes.inside", name, "unknown", "the runner could not be started")
    not_seen = f"not looked for {' and '.join(seen.unwatched)}" if seen.unwatched else ""
    if not set(seen.watched) - {BESIDE}:  # a place that no runner has a reason to know proves next to nothing
        return _check("writes.inside", name, "unknown", not_seen or "nobody looked")
    detail = f"none {', '.join(seen.watched[:-1])}{' or ' if seen.watched[1:] else ''}{seen.watched[-1]}"
    return _check("writes.inside", name, "pass", f"{detail}; {not_seen}" if not_seen else detail)


def _secrets(title: str, seen: RepeatSeen) -> Check:
    name = f"{title}: keeps its secrets"
    if seen.leaks:
        detail = f"no secret ({', '.join(seen.secrets)}) may stand in what it leaves; found one in {seen.leaks[0]}"
        return _check("secrets.kept", name, "fail", detail)
    return _check("secrets.kept", name, "pass", ", ".join(seen.secrets))


def killed_by_nudge(seen: RunSeen) -> bool:
    """Say whether a signal with a nudge's number ended a run."""
    return seen.exit is not None and -seen.exit in SIGUSR1.values()


def _check(rule: str, name: str, status: Status, detail: str) -> Check:
    return check("runner", rule, name, status, detail)
