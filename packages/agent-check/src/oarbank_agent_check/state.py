"""What the law remembers between two steps, and the same as JSON, so that strikes and bans outlive the agent.

It holds facts and decides nothing. Frozen: a step makes a new state. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from oarbank_agent_check.budget import Beside, Budget
from oarbank_agent_check.check import Watch
from oarbank_agent_check.inputs import GpuJobs, Input, Job, Policy, Pressure, Protected, SampleSeen
from oarbank_agent_check.journal import input_of, value_of

DEFAULT_RULE: GpuJobs = "when_no_gpu_protected"
"""What holds until the owner says otherwise (the contract's default)."""

Causes = tuple[Input, ...]
Phase = Literal["waiting", "running", "gone"]


class Held(NamedTuple):
    """A pause: until when (None: nobody knows), why, and the inputs that led to it."""

    until: float | None
    reason: str
    cause: Causes


@dataclass(frozen=True, slots=True)
class JobState:
    """One job from its first word to its end; `gone` is one that was stopped or given back and has not ended yet."""

    told: Job
    phase: Phase = "waiting"
    duty: int | None = None
    """The duty in force, in thousandths."""
    waits: str | None = None
    """While waiting: the reason said last."""
    struck: Held | None = None
    """The pause that a strike earned, whether or not another one covers it."""
    paused: Held | None = None
    """The pause in force."""
    watch: Watch = field(default_factory=Watch)


@dataclass(frozen=True, slots=True)
class State:
    """All that the law remembers; `State()` is the start: no job, no protected program, `when_no_gpu_protected`."""

    now: float | None = None
    """The latest moment heard of."""
    policy: Policy | None = None
    programs: Mapping[str, Beside] = field(default_factory=dict)
    """The protected programs that use the GPU, by name; one without a name has the empty one."""
    jobs: Mapping[str, JobState] = field(default_factory=dict)
    """Jobs that have not ended, in the order they came."""
    bans: Mapping[str, Held] = field(default_factory=dict)
    """By module."""

    @property
    def rule(self) -> GpuJobs:
        """The owner's `gpu_jobs` in force."""
        return DEFAULT_RULE if self.policy is None else self.policy.gpu_jobs


def state_to_json(state: State) -> dict[str, Any]:
    """Give the state as plain JSON values; `state_from_json` reads them back to an equal one."""
    return {
        "law": 1,
        "now": state.now,
        "policy": _entry(state.policy),
        "programs": {name: _beside_value(beside) for name, beside in state.programs.items()},
        "jobs": [_job_value(job) for job in state.jobs.values()],
        "bans": {module: _held_value(ban) for module, ban in state.bans.items()},
    }


def state_from_json(value: Any) -> State:
    """Read what `state_to_json` gave; ValueError for anything else."""
    try:
        if value["law"] != 1:
            raise ValueError(f"law must be 1; found {value['law']!r:.60}")
        jobs = [_job(one) for one in value["jobs"]]
        return State(
            now=_number(value["now"]),
            policy=None if value["policy"] is None else _input(value["policy"], Policy),
            programs={name: _beside(one) for name, one in value["programs"].items()},
            jobs={job.told.job: job for job in jobs},
            bans={module: _ban(one) for module, one in value["bans"].items()},
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as fault:
        raise ValueError(f"the law's state: must be what it wrote itself; found a fault: {fault!r:.200}") from None


def _entry(entry: Input | None) -> dict[str, Any] | None:
    return None if entry is None else value_of(entry)


def _entries(entries: Causes) -> list[dict[str, Any]]:
    return [value_of(entry) for entry in entries]


def _held_value(held: Held | None) -> dict[str, Any] | None:
    return None if held is None else {"until": held.until, "reason": held.reason, "because": _entries(held.cause)}


def _beside_value(beside: Beside) -> dict[str, Any]:
    return {
        "told": value_of(beside.told),
        "budgets": {module: [budget.level, budget.left] for module, budget in beside.budgets.items()},
        "clean_since": beside.clean_since,
        "halved_at": beside.halved_at,
        "heard": _entry(beside.heard),
        "stale": beside.stale,
        "because": _entries(beside.cause),
    }


def _job_value(job: JobState) -> dict[str, Any]:
    return {
        "told": value_of(job.told),
        "phase": job.phase,
        "duty": job.duty,
        "waits": job.waits,
        "struck": _held_value(job.struck),
        "paused": _held_value(job.paused),
        "watch": {
            "fresh": job.watch.fresh,
            "most": job.watch.most,
            "over": _entries(job.watch.over),
            "strikes": list(job.watch.strikes),
        },
    }


def _input(value: Any, kind: type[Any]) -> Any:
    entry = input_of(value)
    if not isinstance(entry, kind):
        raise ValueError(f"must be a {kind.__name__}; found {value!r:.60}")
    return entry


def _causes(values: list[Any]) -> Causes:
    return tuple(_input(value, object) for value in values)


def _number(value: Any) -> float | None:
    return None if value is None else float(_of(value, int, float))


def _of(value: Any, *kinds: type[Any]) -> Any:
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(f"must be {' or '.join(kind.__name__ for kind in kinds)}; found {value!r:.60}")
    return value


def _held(value: Any) -> Held | None:
    if value is None:
        return None
    return Held(_number(value["until"]), _of(value["reason"], str), _causes(value["because"]))


def _ban(value: Any) -> Held:
    held = _held(value)
    if held is None or held.until is None:
        raise ValueError(f"a ban must have an end; found {value!r:.60}")
    return held


def _beside(value: Any) -> Beside:
    clean_since = _number(value["clean_since"])
    if clean_since is None:
        raise ValueError("clean_since must be a number; found null")
    return Beside(
        told=_input(value["told"], Protected),
        budgets={module: Budget(_of(level, int), _of(left, int)) for module, (level, left) in value["budgets"].items()},
        clean_since=clean_since,
        halved_at=_number(value["halved_at"]),
        heard=None if value["heard"] is None else _input(value["heard"], Pressure),
        stale=_of(value["stale"], bool),
        cause=_causes(value["because"]),
    )


def _job(value: Any) -> JobState:
    watch = value["watch"]
    if value["phase"] not in ("waiting", "running", "gone"):
        raise ValueError(f"phase must be waiting, running or gone; found {value['phase']!r:.60}")
    return JobState(
        told=_input(value["told"], Job),
        phase=value["phase"],
        duty=_of(value["duty"], int, type(None)),
        waits=_of(value["waits"], str, type(None)),
        struck=_held(value["struck"]),
        paused=_held(value["paused"]),
        watch=Watch(
            fresh=_of(watch["fresh"], bool),
            most=_number(watch["most"]),
            over=tuple(_input(one, SampleSeen) for one in watch["over"]),
            strikes=tuple(float(_of(t, int, float)) for t in watch["strikes"]),
        ),
    )
