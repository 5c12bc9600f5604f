"""One step of the law: what was heard, and the time, in; orders out. The check, the budget and admission, composed.

Time passes between inputs. What falls due at a moment (the end of a pause or a ban, a step of growth, a halving in a
silence) is ordered with that moment as its `t`, before any input of the same or a later moment. A metric falls silent
only when its 10 s are over and nothing came, so a row at that very moment is in time. Ticks bring time and
nothing else: more of them change no order.

Orders of one moment come so that their sum never passes the budget: pauses first, then duties that shrink, then who is
admitted, then duties that grow, then resumes. Every order carries the inputs that led to it. Pure: the shell carries
orders out, and nothing else acts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from oarbank_agent_check import budget, check, settle
from oarbank_agent_check.actions import Action, Ban, Release, Stop, Unban
from oarbank_agent_check.inputs import FARTHEST_S, Input, Job, JobEnd, Policy, Pressure, Protected, SampleSeen, Tick
from oarbank_agent_check.state import Held, JobState, State, state_from_json, state_to_json

__all__ = ["State", "document", "next_due", "state_from_json", "state_to_json", "step"]

Orders = tuple[Action, ...]


def step(state: State, inputs: Iterable[Input], now: float) -> tuple[State, Orders]:
    """Hear `inputs`, in order of their `t`, all by `now`, and give the orders with the moments that they fell due.

    Raises ValueError where time goes backwards or is beyond `FARTHEST_S`; the state given is never changed.
    """
    if not abs(now) <= FARTHEST_S:
        raise ValueError(f"step: the time must be within {FARTHEST_S:.0e} s of 0; found {now}")
    given: list[Action] = []
    for told in inputs:
        if told.t > now:
            raise ValueError(f"step: an input must be from {now} or before, the time of the step; found {told.t}")
        state, orders = _pass_time(state, told.t)
        given += orders
        state, orders = _hear(state, told)
        given += orders
    state, orders = _pass_time(state, now)
    return state, (*given, *orders)


def document(state: State, job: str) -> dict[str, Any]:
    """Give the fields of the job's control document that the law decides: `gpu_duty`, `pause`, `reason`.

    A field without effect is left out; `{}` for a job without any, for one that waits, and for one not known.
    """
    known = state.jobs.get(job)
    if known is None:
        return {}
    fields: dict[str, Any] = {} if known.duty is None else {"gpu_duty": known.duty / budget.WHOLE}
    return fields if known.paused is None else fields | {"pause": True, "reason": known.paused.reason}


def next_due(state: State) -> float | None:
    """Say when the law acts next if nothing is heard until then; None: never. A moment later is never too late."""
    moment = _due(state)
    if moment is None:
        return None
    t, only_after = moment
    return math.nextafter(t, math.inf) if only_after else t


def _pass_time(state: State, now: float) -> tuple[State, Orders]:
    """Let every due moment up to `now` pass, one after the other."""
    if state.now is not None and now < state.now:
        raise ValueError(f"step: time must not go backwards; it was {state.now}, found {now}")
    given: list[Action] = []
    while (moment := _due(state)) is not None and moment <= (now, False):
        state, orders = _pass_moment(state, moment)
        given += orders
    return replace(state, now=now), tuple(given)


def _due(state: State) -> tuple[float, bool] | None:
    """The next moment that acts by itself; True: only when it has passed."""
    ends = [ban.until for ban in state.bans.values() if ban.until is not None]
    ends += [job.struck.until for job in state.jobs.values() if job.struck is not None and job.struck.until is not None]
    moments = [(end, False) for end in ends]
    moments += [moment for beside in state.programs.values() if (moment := budget.due(beside)) is not None]
    return min(moments, default=None)


def _pass_moment(state: State, moment: tuple[float, bool]) -> tuple[State, Orders]:
    """Let all pass that falls due at that moment: bans and pauses end, budgets grow or shrink."""
    t, _ = moment
    over = {module: ban for module, ban in state.bans.items() if (ban.until, False) == moment}
    jobs, ended = dict(state.jobs), ()
    for name, job in state.jobs.items():
        if job.struck is not None and (job.struck.until, False) == moment:
            jobs[name], ended = replace(job, struck=None), (*ended, *job.struck.cause)
    programs, causes = dict(state.programs), ()
    for name, beside in state.programs.items():
        if budget.due(beside) == moment:
            programs[name] = budget.pass_moment(beside, t)
            if programs[name].budgets != beside.budgets:
                causes = (*causes, *programs[name].cause)
    bans = {module: ban for module, ban in state.bans.items() if module not in over}
    unbans = tuple(Unban(t=t, module=module, because=ban.cause) for module, ban in over.items())
    causes += tuple(entry for ban in over.values() for entry in ban.cause)
    state, orders = settle.settle(replace(state, jobs=jobs, programs=programs, bans=bans), t, (*causes, *ended))
    return state, (*unbans, *orders)


def _hear(state: State, told: Input) -> tuple[State, Orders]:
    match told:
        case Tick():
            return state, ()
        case SampleSeen():
            return _sample(state, told)
        case Job():
            if told.job in state.jobs:
                return state, ()  # it is known: its first word holds
            state = replace(state, jobs={**state.jobs, told.job: JobState(told)})
        case JobEnd():
            if told.job not in state.jobs:
                return state, ()
            state = replace(state, jobs={name: job for name, job in state.jobs.items() if name != told.job})
        case Protected():
            state = replace(state, programs=_programs(state, told))
        case Pressure():
            programs = {
                name: budget.hear(beside, told) if _of_one(told, beside) else beside
                for name, beside in state.programs.items()
            }
            unchanged = all(programs[name].budgets == beside.budgets for name, beside in state.programs.items())
            state = replace(state, programs=programs)
            if unchanged:
                return state, ()
        case Policy():
            state = replace(state, policy=told)
    return settle.settle(state, told.t, (told,))


def _programs(state: State, told: Protected) -> dict[str, budget.Beside]:
    """The programs that use the GPU, with what was told of one. Its name alone says which: no name is one too."""
    name = told.program or ""
    programs = {known: beside for known, beside in state.programs.items() if known != name}
    if told.active:
        beside = state.programs.get(name)
        programs[name] = budget.start(told) if beside is None else budget.told_again(beside, told)
    return programs


def _of_one(row: Pressure, beside: budget.Beside) -> bool:
    """A row without a program speaks of each, and a program without a name hears each: no slowing gets lost."""
    return row.program is None or beside.told.program is None or row.program == beside.told.program


def _sample(state: State, told: SampleSeen) -> tuple[State, Orders]:
    """Judge a sample of a job that runs; those of jobs that wait, are held or have ended say nothing."""
    job = state.jobs.get(told.job)
    if job is None or job.phase != "running" or job.paused is not None:
        return state, ()
    duty = None if job.duty is None else job.duty / budget.WHOLE
    watch, cause = check.judge(job.watch, told, duty)
    if watch is job.watch:
        return state, ()
    job = replace(job, watch=watch)
    if not cause:
        return replace(state, jobs={**state.jobs, told.job: job}), ()
    return _strike(state, job, told.t, cause)


def _strike(state: State, job: JobState, t: float, cause: tuple[SampleSeen, ...]) -> tuple[State, Orders]:
    name, module, number = job.told.job, job.told.module, len(job.watch.strikes)
    shares = ", ".join("unreadable" if one.share is None else f"{one.share:.3f}" for one in cause)
    duty = 0.0 if job.duty is None else job.duty / budget.WHOLE
    reason = f"over the duty of {duty:.3f}: {shares}; strike {number} of {check.STRIKES}"
    before: Orders = ()
    match check.consequence(job.watch, pausable=job.told.pausable):
        case "pause":
            job = replace(job, struck=Held(t + check.PAUSE_S, reason, cause))
        case "release":
            job, before = replace(job, phase="gone"), (Release(t=t, job=name, reason=reason, because=cause),)
        case "stop":
            until = t + check.BAN_S
            job = replace(job, phase="gone")
            before = (
                Stop(t=t, job=name, reason=reason, because=cause),
                Ban(t=t, module=module, until=until, reason=reason, because=cause),
            )
            state = replace(state, bans={**state.bans, module: Held(until, reason, cause)})
    state, orders = settle.settle(replace(state, jobs={**state.jobs, name: job}), t, cause)
    return state, (*before, *orders)
