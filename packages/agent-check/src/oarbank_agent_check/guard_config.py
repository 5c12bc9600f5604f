"""What an owner wants guarded, as typed facts: a configuration that its contract accepts goes in as a value.

Whether it is right is decided by the contract (`guard-config-1`), which has spoken before. Files that it names are
not read here. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oarbank_agent_check.inputs import GpuJobs, GpuUse
from oarbank_agent_check.state import DEFAULT_RULE

DEFAULT_TARGET = 0.05
DEFAULT_GRACE_S = 20.0  # contract of the configuration, as the manifest's

Level = float | str
"""A part of the GPU's time, or @ and the path of a certificate."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a program's counter is read; one of the two."""

    file: str | None
    command: str | None


@dataclass(frozen=True, slots=True)
class Match:
    """Which processes are a program's: all that is given must fit."""

    pid: int | None
    process: str | None
    arguments: str | None

    def fits(self, pid: int, process: str, arguments: Sequence[str]) -> bool:
        """Say whether a process is one."""
        return (
            self.pid in (None, pid)
            and self.process in (None, process)
            and (self.arguments is None or self.arguments in " ".join(arguments))
        )


@dataclass(frozen=True, slots=True)
class Protect:
    """A protected program."""

    name: str
    match: Match
    target: float  # part of its speed, above 0 to 1
    progress: Progress | None
    level: Level | None
    levels: Mapping[str, Level]


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job with its payload, or an operation with its params; texts are @ and a path."""

    name: str
    module: str
    stage: str | None
    payload: Mapping[str, Any] | str | None
    op: str | None
    params: Mapping[str, Any] | str
    data: str | None


@dataclass(frozen=True, slots=True)
class WorkloadEntry:
    """A long-running process."""

    name: str
    command: tuple[str, ...]
    folder: str | None
    env: Mapping[str, str]
    capabilities: frozenset[str]
    gpu_use: GpuUse
    stop_grace_s: float


@dataclass(frozen=True, slots=True)
class GuardConfig:
    """The whole of it."""

    gpu_jobs: GpuJobs
    protect: tuple[Protect, ...]
    jobs: tuple[JobEntry, ...]
    workloads: tuple[WorkloadEntry, ...]


def guard_config(value: Mapping[str, Any]) -> GuardConfig:
    """Return the facts of a valid configuration, with the contract's defaults."""
    return GuardConfig(
        gpu_jobs=value.get("gpu_jobs", DEFAULT_RULE),
        protect=tuple(_protect(one) for one in value.get("protect", [])),
        jobs=tuple(_job(one) for one in value.get("job", [])),
        workloads=tuple(_workload(one) for one in value.get("workload", [])),
    )


def _protect(one: Mapping[str, Any]) -> Protect:
    progress = one.get("progress")
    return Protect(
        name=one["name"],
        match=Match(one.get("pid"), one.get("process"), one.get("arguments")),
        target=float(one.get("target", DEFAULT_TARGET)),
        progress=None if progress is None else Progress(progress.get("file"), progress.get("command")),
        level=one.get("level"),
        levels=one.get("levels", {}),
    )


def _job(one: Mapping[str, Any]) -> JobEntry:
    params = one.get("params")
    return JobEntry(
        name=one["name"],
        module=one["module"],
        stage=one.get("stage"),
        payload=one.get("payload"),
        op=one.get("op"),
        params={} if params is None else params,
        data=one.get("data"),
    )


def _workload(one: Mapping[str, Any]) -> WorkloadEntry:
    return WorkloadEntry(
        name=one["name"],
        command=tuple(one["command"]),
        folder=one.get("folder"),
        env=one.get("env", {}),
        capabilities=frozenset(one.get("capabilities", [])),
        gpu_use=one.get("gpu_use", "shared"),
        stop_grace_s=float(one.get("stop_grace_s", DEFAULT_GRACE_S)),
    )
