"""Bring every job to where the facts want it: give the orders that lead there, and the state once they are given.

It compares what is in force with what should be, so that an order is only ever a change. It hears nothing and lets no
time pass; that is `core`'s. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from oarbank_agent_check import admission, budget, check
from oarbank_agent_check.actions import Action, Admit, Hold, Pause, Release, Resume, SetDuty
from oarbank_agent_check.admission import Standing
from oarbank_agent_check.inputs import Input
from oarbank_agent_check.state import Causes, Held, JobState, State

NOTHING_LEFT = f"{admission.BLOCKED}: nothing is left of the budget beside the protected program"


@dataclass(slots=True)
class _Orders:
    """The orders of one moment, by their turn."""

    pauses: list[Action] = field(default_factory=list)
    shrink: list[Action] = field(default_factory=list)
    admit: list[Action] = field(default_factory=list)
    grow: list[Action] = field(default_factory=list)
    resume: list[Action] = field(default_factory=list)

    def in_turn(self) -> tuple[Action, ...]:
        return (*self.pauses, *self.shrink, *self.admit, *self.grow, *self.resume)


def settle(state: State, t: float, trigger: Causes) -> tuple[State, tuple[Action, ...]]:
    """Give the orders that the facts want at `t`, after `trigger` changed some of them."""
    beside = tuple(state.programs.values())
    standings = {name: admission.standing(job.told, state.rule, beside, state.bans) for name, job in state.jobs.items()}
    left = {job.told.module: _left(beside, job.told.module) for job in state.jobs.values()}
    among = sum(
        admission.shares_budget(job.told)
        and (job.phase != "waiting" or _reason(standings[name], left[job.told.module]) is None)
        for name, job in state.jobs.items()
    )
    orders, jobs = _Orders(), dict[str, JobState]()
    facts = _facts(state)
    for name, job in state.jobs.items():
        stand, why = standings[name], _Why(t, job.told, facts, trigger)
        new = job.phase == "waiting"
        if new:
            job = _waiting(job, _reason(stand, left[job.told.module]), why, orders)
        if job.phase == "running":
            job = _held(job, stand, state.bans, why, orders)
        # One that is held for want of terms keeps the duty it had: without one it would be free.
        if job.phase == "running" and stand.terms in ("free", "duty"):
            share = left[job.told.module] // among if stand.terms == "duty" else None
            job = _at(job, share, why, orders, new=new)
            job = _resumed(job, why, orders)
        jobs[name] = job
    return replace(state, jobs=jobs), orders.in_turn()


@dataclass(frozen=True, slots=True)
class _Why:
    """The moment, and what an order of one job may be put down to."""

    t: float
    job: Input
    facts: Causes
    trigger: Causes

    def because(self, *more: Input) -> Causes:
        """The inputs behind an order, each once, in the order of time."""
        return _once((self.job, *self.facts, *self.trigger, *more))


def _facts(state: State) -> Causes:
    programs = [entry for beside in state.programs.values() for entry in (beside.told, *beside.cause)]
    return (*programs,) if state.policy is None else (state.policy, *programs)


def _once(entries: Iterable[Input]) -> Causes:
    """Each entry once. Equal ones are one: nothing tells them apart."""
    seen: list[Input] = []
    for entry in entries:
        if entry not in seen:
            seen.append(entry)
    return tuple(sorted(seen, key=lambda entry: entry.t))


def _left(beside: tuple[budget.Beside, ...], module: str) -> int:
    """What is left for a module beside all programs: the least, 0 where a level is missing."""
    return min((program.left(module) or 0 for program in beside), default=0)


def _reason(stand: Standing, left: int) -> str | None:
    """Why a new job may not start; None: it may."""
    if stand.terms == "duty":
        return None if left else NOTHING_LEFT
    return stand.reason or None


def _waiting(job: JobState, reason: str | None, why: _Why, orders: _Orders) -> JobState:
    if reason is None:
        orders.admit.append(Admit(t=why.t, job=job.told.job, because=why.because()))
        return replace(job, phase="running", waits=None, watch=check.began(job.watch, None))
    if reason != job.waits:
        orders.pauses.append(Hold(t=why.t, job=job.told.job, reason=reason, because=why.because()))
    return replace(job, waits=reason)


def _held(job: JobState, stand: Standing, bans: Mapping[str, Held], why: _Why, orders: _Orders) -> JobState:
    """Pause a job, or change the pause it has; one that can't be paused is given back."""
    name = job.told.job
    waits = stand.terms in ("wait", "banned")
    if waits and not job.told.pausable:
        orders.pauses.append(Release(t=why.t, job=name, reason=stand.reason, because=why.because()))
        return replace(job, phase="gone")
    wanted = job.struck
    if stand.terms == "wait":
        wanted = Held(None, stand.reason, why.because())
    elif stand.terms == "banned":
        ban = bans[job.told.module]
        wanted = Held(ban.until, stand.reason, ban.cause)  # a ban lasts longer than any strike from before it
    if wanted is None or (job.paused is not None and job.paused[:2] == wanted[:2]):
        return job
    orders.pauses.append(Pause(t=why.t, job=name, until=wanted.until, reason=wanted.reason, because=wanted.cause))
    return replace(job, paused=wanted)


def _at(job: JobState, share: int | None, why: _Why, orders: _Orders, *, new: bool) -> JobState:
    if share == job.duty:
        return job
    duty = None if share is None else share / budget.WHOLE
    order = SetDuty(t=why.t, job=job.told.job, duty=duty, because=why.because())
    if new:
        orders.admit.append(order)
    elif share is not None and (job.duty is None or share < job.duty):
        orders.shrink.append(order)
    else:
        orders.grow.append(order)
    return replace(job, duty=share, watch=check.duty_changed(job.watch, duty))


def _resumed(job: JobState, why: _Why, orders: _Orders) -> JobState:
    if job.paused is None or job.struck is not None:
        return job
    orders.resume.append(Resume(t=why.t, job=job.told.job, because=_once((*job.paused.cause, *why.trigger))))
    duty = None if job.duty is None else job.duty / budget.WHOLE
    return replace(job, paused=None, watch=check.began(job.watch, duty))
