"""What the kit measured of one runner, against a limit: the CPU, the GPU or both, and the worst of them speaks.

Pure. A share can only fall on a busy machine, so a share above the limit accuses, while one below it clears only where
the runner was not short of a processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from oarbank_conformkit.checks import DETAIL_CHARS, Check, Status
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.faults import sentence
from oarbank_conformkit.judge.duty_lines import BURST_TOLERANCE, SLACK, TOLERANCE, Lines, limit
from oarbank_conformkit.judge.stop import BUSY
from oarbank_conformkit.shares import Bounds, Shares, gpu_shares, shares
from oarbank_sdk.events import DutyReport

TOLD = 0.02
"""A share that reports may tell of while a source that sees the device rightly shows nothing: one late tick."""

COVERED = 0.9
"""Part of the window that ticks must cover for the mean to be a mean over it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What the kit measured of one device: shares, or the reason why there are none."""

    device: Literal["cpu", "gpu"]
    source: str
    clock: str | None
    shares: Shares | None
    unknown: str | None


def measured(seen: DutySeen, used: list[DutyReport]) -> list[Measured]:
    """Return all that decides about a runner; the device that its reports name comes first.

    Reports that name another device than the CPU need GPU time. Where a GPU source reads, its word counts whatever
    the reports say; the word of the CPU counts unless all of them say that the units run elsewhere.
    """
    others = sorted({report.device for report in used} - {"cpu"})
    cpu_too = not used or any(report.device == "cpu" for report in used)
    gpu = [_gpu(seen, used, others)] if others or seen.gpu is not None else []
    cpu = [_cpu(seen)] if cpu_too else []
    return gpu + cpu if others else cpu + gpu


def _gpu(seen: DutySeen, used: list[DutyReport], others: list[str]) -> Measured:
    gpu = seen.gpu
    if gpu is None:
        why = f"reports say {', '.join(others)}, and {seen.gpu_unknown or 'no GPU time was read'}"
        advice = 'If the units run on the CPU, make the governor with device="cpu".'
        return Measured("gpu", "none", None, None, f"{sentence(why)} {advice}")
    waits = None if seen.cpu is None else seen.cpu.waits
    found = gpu_shares(gpu.ticks, gpu.start, gpu.end, waits=waits)
    told = max((report.share for report in used if report.device != "cpu"), default=0.0)
    why = _uncovered(found, gpu.end - gpu.start)
    if why is not None and gpu.unknown is not None:
        why = f"the runner's GPU time could not be read: {gpu.unknown}"
    elif why is None and found is not None and told > TOLD and found.mean.held == 0.0:
        names = ", ".join(others)
        why = f"reports say that {told:.3f} of {names} was held, and {gpu.source} shows nothing: it sees another device"
    return Measured("gpu", gpu.source, gpu.clock, found, why)


def _cpu(seen: DutySeen) -> Measured:
    cpu = seen.cpu
    if cpu is None:
        return Measured("cpu", "none", None, None, "nothing was measured")
    if cpu.unknown is not None:
        why = f"the runner's processor time could not be read: {cpu.unknown}"
        return Measured("cpu", cpu.source, cpu.clock, None, why)
    found = shares(cpu.ticks, cpu.start, cpu.end, total_s=cpu.total_s, waits=cpu.waits)
    return Measured("cpu", cpu.source, cpu.clock, found, _uncovered(found, cpu.end - cpu.start))


def _uncovered(found: Shares | None, length_s: float) -> str | None:
    covered = 0.0 if found is None else found.covered_s
    return None if covered >= COVERED * length_s else f"the kit could measure only {covered:.1f} s of {length_s:.1f} s"


def judge_measured(line: Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    """Give the checks of the mean over the window and of the worst two seconds in it."""
    nobody = "" if used else ". No report says where the units run, so what was measured may not be all there is."
    found = measured(seen, used)
    allows = (line.spec.duty, TOLERANCE)
    yield _worst_of([_mean(line, "duty.measured_share", one, allows, seen, nobody) for one in found])
    yield _worst_of([_burst(line, one, seen, nobody) for one in found])


def judge_share(
    line: Lines, rule: str, seen: DutySeen, used: list[DutyReport], duty: float, tolerance: float = TOLERANCE
) -> Check:
    """Return the check of one rule: the mean over the window that `seen` holds, against another duty.

    A device that shows nothing there is believed, as long as the window of the spec's own duty showed that it is seen.
    """
    blind = next((one for one in measured(seen, used) if one.unknown is not None), None)
    if blind is not None and blind.unknown is not None:
        return line(rule, "unknown", blind.unknown)
    allows = (duty, tolerance)
    return _worst_of([_mean(line, rule, one, allows, seen, "") for one in measured(seen, used)])


def _worst_of(checks: list[Check]) -> Check:
    """One verdict over all devices: the worst speaks, and where all are alike each has its say."""
    order: tuple[Status, ...] = ("fail", "unknown", "pass")
    status = min((one.status for one in checks), key=order.index)
    alike = [one for one in checks if one.status == status]
    return replace(alike[0], detail="; ".join(one.detail for one in alike)[:DETAIL_CHARS])


def _mean(line: Lines, rule: str, one: Measured, allows: tuple[float, float], seen: DutySeen, nobody: str) -> Check:
    if one.unknown is not None or one.shares is None:
        return line(rule, "unknown", one.unknown or "nothing was measured")
    held = f"held {one.shares.mean.held:.3f} {_where(one)}over {one.shares.covered_s:.1f} s"
    return _bounded(line, rule, one, one.shares.mean, allows, held, seen, nobody)


def _burst(line: Lines, one: Measured, seen: DutySeen, nobody: str) -> Check:
    rule = "duty.burst"
    if one.unknown is not None or one.shares is None:
        return line(rule, "unknown", one.unknown or "nothing was measured")
    worst = one.shares.worst
    if worst is None:
        return line(rule, "unknown", f"the ticks cover {one.shares.covered_s:.2f} s, less than the 2 s of a burst")
    held = f"held at most {worst.held:.3f} {_where(one)}in 2 s"
    return _bounded(line, rule, one, worst, (line.spec.duty, BURST_TOLERANCE), held, seen, nobody)


def _where(one: Measured) -> str:
    return "" if one.device == "cpu" else f"of the GPU ({one.source}) "


def _bounded(
    line: Lines,
    rule: str,
    one: Measured,
    bounds: Bounds,
    allows: tuple[float, float],
    held: str,
    seen: DutySeen,
    nobody: str,
) -> Check:
    """Hold the bounds of a share to what a duty and a tolerance allow together."""
    found = one.shares
    assert found is not None
    top = sum(allows) + SLACK
    allowed = f"at most {limit(*allows):g} is allowed"
    told = f"{held}; {allowed}"
    evidence: dict[str, object] = {
        "device": one.device,
        "source": one.source,
        "limit": limit(*allows),
        "held": round(bounds.held, 6),
        "sure": round(bounds.sure, 6),
        "wanted": round(bounds.wanted, 6),
        "ticks": found.ticks,
        "tick_worst_s": round(found.tick_worst_s, 6),
        "waited_s": None if found.waited_s is None else round(found.waited_s, 3),
    }
    if bounds.sure > top:
        return line(rule, "fail", told + nobody, evidence)
    if bounds.held > top:
        why = f"{_late(found)}, so as little as {bounds.sure:.3f} is possible"
        return line(rule, "unknown", f"{told}. {why}", evidence | BUSY)
    if bounds.wanted > top:
        why = f"on a free machine it may be as much as {bounds.wanted:.3f}"
        return line(rule, "unknown", f"{told}, but {why}: {_late(found)}{_waited(found)}", evidence | BUSY)
    if nobody:
        return line(rule, "unknown", told + nobody, evidence)
    return line(rule, "pass", told + _unfollowed(seen), evidence)


def _late(found: Shares) -> str:
    worst = f"were up to {found.tick_worst_s * 1000:.0f} ms long"
    return f"the kit's ticks, {found.tick_median_s * 1000:.1f} ms apart, {worst}"


def _waited(found: Shares) -> str:
    return "" if found.waited_s is None else f", and the runner waited {found.waited_s:.2f} s for a processor"


def _unfollowed(seen: DutySeen) -> str:
    followed = seen.cpu is None or seen.cpu.follows_orphans
    return "" if followed else " (children that detach themselves cannot be followed on this system)"
