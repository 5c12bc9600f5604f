"""What the law does: each an order at a moment `t`, with the inputs that led to it.

The same words as the actions of `agent-journal-1`. The shell (`agent`) carries them out; nothing else acts. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from oarbank_agent_check.inputs import Input


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What all orders share."""

    t: float
    because: tuple[Input, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDuty(Action):
    """Write `gpu_duty` (None: without one) into the job's control document."""

    job: str
    duty: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(Action):
    """Hold the job; `until` is in seconds on the same clock, None while nobody knows."""

    job: str
    until: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(Action):
    """Write a document without the pause."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop(Action):
    """Stop the job: its attempt is released, not failed."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Action):
    """Give the attempt back without a fault: it cannot be paused."""

    job: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ban(Action):
    """No duty for any job of the module until then."""

    module: str
    until: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unban(Action):
    """The module may have duties again."""

    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit(Action):
    """The job may start, or go on."""

    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold(Action):
    """The job waits."""

    job: str
    reason: str
