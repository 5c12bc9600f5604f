"""What the law hears: each a fact at a moment `t`, in seconds on the agent's own clock.

The same words as the inputs of `agent-journal-1`, so that a journal can be fed to the law again. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

FARTHEST_S = 1e12
"""A clock reads at most so much, either way; far beyond it a double no longer tells one minute from the next."""

Speed = Literal["learning", "unknown"]
"""Why a program's level does not count yet: its own speed is being learnt, or its counter says nothing."""

GpuUse = Literal["none", "shared", "exclusive"]
GpuJobs = Literal["never", "when_no_gpu_protected", "certified", "always"]


@dataclass(frozen=True, slots=True)
class Job:
    """A job asks to run; `job` is its attempt, `module` what a ban falls on."""

    t: float
    job: str
    module: str
    cooperative: bool
    """It declares `cooperative_throttle`: it holds a duty itself."""
    gpu_use: GpuUse
    pausable: bool
    """It declares `cooperative_pause`, or it may be frozen; else a strike releases it."""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job has ended, however it did."""

    t: float
    job: str


@dataclass(frozen=True, slots=True)
class Protected:
    """Whether a protected program uses the GPU, and the level certified beside it (null: none passed)."""

    t: float
    active: bool
    level: float | None = None
    levels: Mapping[str, float] = field(default_factory=dict)
    """Levels by module, where they differ."""
    program: str | None = None
    speed: Speed | None = None
    """Why its level is kept back; null: it is told here, or there is none."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """How much the program slowed, over its owner's target; None when the metric is stale or unreadable."""

    t: float
    value: float | None
    program: str | None = None


@dataclass(frozen=True, slots=True)
class SampleSeen:
    """A job's measured share over about 2 s; None when it could not be read."""

    t: float
    job: str
    share: float | None
    low: float | None = None
    high: float | None = None
    baseline: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """The owner's rule for GPU work while a protected program uses the GPU."""

    t: float
    gpu_jobs: GpuJobs


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    t: float


Input = Job | JobEnd | Protected | Pressure | SampleSeen | Policy | Tick
