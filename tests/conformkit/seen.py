"""Evidence made by hand, for the pure side: what a runner at a given share would have shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import CpuSeen, DutySeen, GpuSeen, GpuTick, StopSeen, Wait
from oarbank_conformkit.fixtures import DutySpec
from oarbank_conformkit.judge.duty import judge_duty
from oarbank_sdk.events import DutyReport

NUDGED = 1_000_000.0  # wall clock of the nudge
OPENS = 501.0  # monotonic: the window opens a second after the nudge

SPEC = DutySpec(0, "held", None, 0.3, 4.0, {}, (), {})
STOPPED = StopSeen("stopped", 20.0, ack="failure", ack_s=0.01, absent_s=0.005, exit_s=0.02, alive_s=0.015, code=75)


def report(share: float = 0.3, *, ends_s: float = 2.5, window_s: float | None = 2.0, **other: Any) -> DutyReport:
    """A report that ended `ends_s` after the nudge."""
    values = {"duty": 0.3, "device": "cpu"} | other
    return DutyReport(t=NUDGED + ends_s, share=share, window_s=window_s, **values)


def ticks(share: float, seconds: float = 4.0, *, dt_s: float = 0.004, start: float = OPENS) -> tuple[Tick, ...]:
    """Equal ticks, each busy for `share` of it."""
    count = round(seconds / dt_s)
    return tuple(Tick(start + (i + 1) * dt_s, dt_s, share * dt_s) for i in range(count))


def cpu(share: float = 0.3, seconds: float = 4.0, **other: Any) -> CpuSeen:
    """The kit's measure of a runner with one thread that holds `share`, on a free machine."""
    seen = CpuSeen(
        OPENS,
        OPENS + seconds,
        ticks=ticks(share, seconds),
        total_s=share * seconds,
        waits=(Wait(OPENS + seconds, seconds, 0.0),),
    )
    return replace(seen, **other)


def gpu_ticks(
    share: float | None, seconds: float = 4.0, *, dt_s: float = 0.05, start: float = OPENS
) -> tuple[GpuTick, ...]:
    """Equal readings of the GPU's counters, each busy for `share` of it; None: unreadable."""
    gain_s = None if share is None else share * dt_s
    return tuple(GpuTick(start + (i + 1) * dt_s, dt_s, gain_s) for i in range(round(seconds / dt_s)))


def gpu(share: float = 0.3, seconds: float = 4.0, **other: Any) -> GpuSeen:
    """The kit's measure of a runner that holds `share` of the GPU."""
    seen = GpuSeen(OPENS, OPENS + seconds, gpu_ticks(share, seconds), source="fake-gpu")
    return replace(seen, **other)


def duty(**other: Any) -> DutySeen:
    """A runner that did everything right."""
    seen = DutySeen(
        phase_s=0.1,
        limit_s=60.0,
        written_wall=NUDGED - 0.001,
        nudged_wall=NUDGED,
        nudged=OPENS - 1.0,
        reports=(report(), report(ends_s=4.5)),
        cpu=cpu(),
        gpu_unknown="no GPU source",
        stop=STOPPED,
    )
    return replace(seen, **other)


def judged(seen: DutySeen, spec: DutySpec = SPEC, *, cancellable: bool = True) -> dict[str, Check]:
    """The checks of one duty spec, by rule."""
    checks = judge_duty(spec, seen, cancellable=cancellable)
    assert len({one.rule for one in checks}) == len(checks)
    return {one.rule: one for one in checks}


def statuses(seen: DutySeen, spec: DutySpec = SPEC, *, cancellable: bool = True) -> dict[str, str]:
    """Their statuses, by rule."""
    return {rule: one.status for rule, one in judged(seen, spec, cancellable=cancellable).items()}
