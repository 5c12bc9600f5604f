"""What a measurement may say: a number, a known zero, or `Unknown` with a reason.

Decides how quantities add up and what one sample looks like on the wire (`gpu-sample-1`). It must never turn an
unknown into a number, not even into zero, and never bend a strange number into a plausible one. Pure: no clock, no
file, no process; whoever reads the machine hands the readings in (`sources`, `tree`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Unknown:
    """A quantity that could not be read; `reason` is one sentence that a person can act on."""

    reason: str


Quantity = int | Unknown
"""Nanoseconds, of which 0 is a known zero, or `Unknown`."""


def total(quantities: Iterable[Quantity]) -> Quantity:
    """Add quantities; a single unknown one makes the sum unknown, and the first reason is the one that is kept."""
    whole = 0
    for quantity in quantities:
        if isinstance(quantity, Unknown):
            return quantity
        whole += quantity
    return whole


def seconds(quantity: Quantity) -> float | None:
    """Say a quantity in seconds, as a document does: unknown is null, never 0."""
    return None if isinstance(quantity, Unknown) else quantity / NS_PER_S


@dataclass(frozen=True, slots=True, order=True)
class ProcessKey:
    """One process for all time: a pid is given out again, the pair is not. `start` is in Unix seconds."""

    pid: int
    start: float


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """What one process used during a sample; `start` is its start in Unix seconds, part of its identity."""

    pid: int
    start: float
    busy: Quantity

    def to_json(self) -> dict[str, Any]:
        """Give the entry of `processes` in a `gpu-sample-1` document."""
        return {"pid": self.pid, "start": round(self.start, 3), "busy_s": seconds(self.busy)}


@dataclass(frozen=True, slots=True)
class UnknownProcess:
    """A process whose time could not be read during a sample, and why; without a pid it is the source as a whole."""

    pid: int | None
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Give the entry of `unknown` in a `gpu-sample-1` document."""
        return {"pid": self.pid, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Sample:
    """How busy a group of processes kept one device from `t - window_s` to `t`: a `gpu-sample-1` document.

    `share` and `busy_s` are null together, when anything in the group was unknown. `share` is not limited to 1: a
    source with several engines may pass it.
    """

    t: float  # Unix seconds, the end of the window
    window_s: float  # above 0
    pids: tuple[int, ...]  # every process that belonged to the group during the window
    share: float | None
    busy_s: float | None
    source: str  # cpu-threads, drm-fdinfo, kfd, nvml, ioreg, pdh, another reader's name, or gpu for several at once
    unknown: tuple[UnknownProcess, ...] = ()
    processes: tuple[ProcessTime, ...] = ()
    low: float | None = None  # bounds of the share, where the source's resolution is coarse
    high: float | None = None
    detail: str | None = None  # which clock stands behind the source

    def to_json(self) -> dict[str, Any]:
        """Give the document; absent bounds and an absent detail are left out."""
        document: dict[str, Any] = {
            "t": self.t,
            "window_s": self.window_s,
            "pids": list(self.pids),
            "share": self.share,
            "busy_s": self.busy_s,
            "source": self.source,
            "unknown": [process.to_json() for process in self.unknown],
            "processes": [process.to_json() for process in self.processes],
        }
        optional = {"low": self.low, "high": self.high, "detail": self.detail}
        return document | {key: value for key, value in optional.items() if value is not None}


def sample_of(
    *,
    t: float,
    window_s: float,
    busy: Quantity,
    processes: Iterable[ProcessTime],
    hidden: Mapping[int, Unknown],
    source: str,
    detail: str,
) -> Sample:
    """Put a sample together from what was measured; raises ValueError where there is no window to measure over.

    `busy` is the measure of all of them together. `hidden` are members of which nothing is known, not even when they
    started. Any unknown process makes the whole sample unknown, whatever `busy` says.
    """
    if not window_s > 0:
        raise ValueError(f"sample: the window must be above 0 s; found {window_s}. Wait before asking again.")
    members = tuple(processes)
    faults = {p.pid: p.busy for p in members if isinstance(p.busy, Unknown)}
    faults = dict(hidden) | faults
    held = seconds(total([busy, *faults.values()]))
    unread = [UnknownProcess(None, busy.reason)] if isinstance(busy, Unknown) else []
    return Sample(
        t=t,
        window_s=window_s,
        pids=tuple(sorted({p.pid for p in members} | set(hidden))),
        share=None if held is None else held / window_s,
        busy_s=held,
        source=source,
        unknown=(*unread, *(UnknownProcess(pid, faults[pid].reason) for pid in sorted(faults))),
        processes=members,
        detail=detail,
    )
