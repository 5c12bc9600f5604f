"""Judge one duty spec: what the runner reported, what the kit measured, whether it stopped.

Pure. Reports count when they began after the duty was written and ended after the settling second; each of them is
judged. The kit's own measure is one mean over the window, and the worst two seconds in it, of the GPU, the CPU or
both; the worst of them speaks. A share can only fall on a busy machine, so a share above the limit accuses, while one
below it clears only where the runner was not short of a processor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from oarbank_conformkit.checks import DETAIL_CHARS, Check, Status, check
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.faults import sentence
from oarbank_conformkit.fixtures import DutySpec
from oarbank_conformkit.judge.run import own_words
from oarbank_conformkit.judge.stop import judge_duty_stop
from oarbank_conformkit.shares import Bounds, Shares, gpu_shares, shares
from oarbank_sdk.events import DutyReport

TOLERANCE = 0.1
"""Share allowed above the duty (GPU duty guide)."""

BURST_TOLERANCE = 0.15
"""Share allowed above the duty in any two seconds: the 0.101 that units of at most the duty's share of a second reach,
and room for the runner's credit.
"""

SLACK = 1e-9
"""0.3 + 0.1 is not 0.4 in binary."""

SETTLE_S = 1.0
"""Seconds after the nudge that nobody judges: safe points are at most a second apart, and the unit in flight is not
governed.
"""

REPORT_WAIT_S = 2.5
"""How much longer than the window the kit waits for a first report."""

ASKED_SLACK = 0.001
"""How far a report's asked duty may lie from the one the kit wrote."""

BEGAN_SLACK_S = 0.05
"""How much earlier than the nudge a report may seem to begin; its times are rounded."""

TOLD = 0.02
"""A share that reports may tell of while a source that sees the device rightly shows nothing: one late tick."""

COVERED = 0.9
"""Part of the window that ticks must cover for the mean to be a mean over it."""


def limit(duty: float, tolerance: float = TOLERANCE) -> float:
    """Return the largest share that passes, as a person reads it."""
    return round(duty + tolerance, 6)


def used_reports(seen: DutySeen) -> list[DutyReport]:
    """Return the reports that are judged: begun after the duty was written, ended after the settling second."""
    return [report for report in seen.reports if _used(report, seen)]


def judge_duty(spec: DutySpec, seen: DutySeen, *, cancellable: bool) -> list[Check]:
    """Return all checks of one duty spec."""
    line = _Lines(spec)
    fault = _runs_fault(spec, seen)
    if fault is not None:
        why = "not measured: the task did not run until the window closed"
        never = seen.refused is not None or (seen.phase_s is None and bool(seen.code))
        rest = _MEASURED[2:3] if never else _MEASURED  # of a runner that never came to work one line is enough
        return [line("duty.runs", "fail", fault), *(line(rule, "unknown", why) for rule in rest)]
    checks = [line("duty.runs", "pass", f"first phase after {seen.phase_s:.2f} s")]
    used = used_reports(seen)
    checks += [_reports(line, seen, used), _reported(line, used), *_measured(line, seen, used)]
    checks += _units(line, seen, used)
    if not cancellable:
        why = "the runner does not declare cancellable, so the kit ended it after the measure"
        checks.append(line("duty.stop", "skip", why))
    elif seen.stop is not None:
        checks.append(judge_duty_stop(line.title, seen.stop))
    return checks


_MEASURED = ("duty.reports", "duty.reported_share", "duty.measured_share", "duty.burst", "duty.stop")


class _Lines:
    """Makes the checks of one spec; the names are what people and machines look for."""

    def __init__(self, spec: DutySpec) -> None:
        self.spec = spec
        self.title = f"duty spec {spec.name}"
        self.limit = limit(spec.duty)
        self.burst_limit = limit(spec.duty, BURST_TOLERANCE)
        self._names = {
            "duty.runs": "runs until it is measured",
            "duty.reports": "reports the duty it held",
            "duty.reported_share": f"reported share within {self.limit:g}",
            "duty.measured_share": f"measured share within {self.limit:g}",
            "duty.burst": f"no burst over {self.burst_limit:g} in any 2 s",
            "duty.stop": "stops while holding the duty",
            "duty.units": "does units while it is measured",
        }

    def __call__(self, rule: str, status: Status, detail: str, evidence: Mapping[str, object] | None = None) -> Check:
        return check("runner", rule, f"{self.title}: {self._names[rule]}", status, detail, evidence)


# ---- did it run -----------------------------------------------------------------------------------------


def _runs_fault(spec: DutySpec, seen: DutySeen) -> str | None:
    if seen.refused is not None:
        return f"must start; {seen.refused}. Look at runner.exec in the manifest."
    code = "" if seen.code is None else f" with {_code(seen.code)}"
    words = own_words(seen.failure, seen.stderr)
    if seen.phase_s is None:
        if seen.code is None:
            return f"must write its first phase; found none after {seen.limit_s:g} s"
        if seen.code:
            return f"must run; it ended{code} after {seen.lasted_s:.1f} s, before its first phase{words}"
        return f"must write its first phase; it ended{code} after {seen.lasted_s:.1f} s without one{words}"
    if seen.ended_s is not None:
        must = f"must run for {SETTLE_S + spec.window_s:g} s after its duty was set"
        advice = "" if seen.code else ". Give the task more to do"
        return f"{must}; it ended{code} after {seen.ended_s:.1f} s{advice}{words}"
    return None


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


# ---- what it reported -----------------------------------------------------------------------------------


def _used(report: DutyReport, seen: DutySeen) -> bool:
    settled = seen.nudged_wall + SETTLE_S
    if report.window_s is None:
        return report.t >= seen.nudged_wall + REPORT_WAIT_S
    return report.t - report.window_s >= seen.written_wall - BEGAN_SLACK_S and report.t > settled


def _reports(line: _Lines, seen: DutySeen, used: list[DutyReport]) -> Check:
    duty = line.spec.duty
    if seen.unusable:
        more = f" ({len(seen.unusable)} such events)" if len(seen.unusable) > 1 else ""
        return line("duty.reports", "fail", f"every gpu_duty event must be usable; {seen.unusable[0]}{more}")
    if not used:
        if abs(seen.clock_step_s) > BEGAN_SLACK_S:
            return line(
                "duty.reports", "unknown", f"the clock of this machine was set by {seen.clock_step_s:+.2f} s meanwhile"
            )
        if seen.reports:
            detail = f"must write one that began after the nudge; found {len(seen.reports)} that began or ended before"
        else:
            detail = (
                "must write gpu_duty events to its events file; found none after the nudge. Give Duty the events path."
            )
        return line("duty.reports", "fail", detail)
    wrong = [report for report in used if report.duty is None or abs(report.duty - duty) > ASKED_SLACK]
    if wrong:
        told = "none" if wrong[0].duty is None else f"{wrong[0].duty:g}"
        return line(
            "duty.reports", "fail", f"a report must name the duty asked, {duty:g}; found {told}", {"asked": duty}
        )
    listed = ", ".join(f"{report.share:.3f}" for report in used)
    longest = [report.longest_unit_s for report in used if report.longest_unit_s is not None]
    units = f"; longest unit {max(longest) * 1000:.1f} ms" if longest else ""
    return line("duty.reports", "pass", f"{len(used)} at duty {duty:g}, device {_devices(used)}: {listed}{units}")


def _reported(line: _Lines, used: list[DutyReport]) -> Check:
    if not used:
        return line("duty.reported_share", "unknown", "there is no report to judge")
    worst = max(report.share for report in used)
    evidence = {"limit": line.limit, "reported": [report.share for report in used]}
    sentence = f"reported at most {worst:.3f}; at most {line.limit:g} is allowed"
    status: Status = "pass" if worst <= line.spec.duty + TOLERANCE + SLACK else "fail"
    return line("duty.reported_share", status, sentence, evidence)


def _devices(used: list[DutyReport]) -> str:
    return ", ".join(sorted({report.device for report in used}))


# ---- what the kit measured ------------------------------------------------------------------------------


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


def _measured(line: _Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    nobody = "" if used else ". No report says where the units run, so what was measured may not be all there is."
    found = measured(seen, used)
    yield _worst_of([_mean(line, one, seen, nobody) for one in found])
    yield _worst_of([_burst(line, one, seen, nobody) for one in found])


def _worst_of(checks: list[Check]) -> Check:
    """One verdict over all devices: the worst speaks, and where all are alike each has its say."""
    order: tuple[Status, ...] = ("fail", "unknown", "pass")
    status = min((one.status for one in checks), key=order.index)
    alike = [one for one in checks if one.status == status]
    return replace(alike[0], detail="; ".join(one.detail for one in alike)[:DETAIL_CHARS])


def _mean(line: _Lines, one: Measured, seen: DutySeen, nobody: str) -> Check:
    rule = "duty.measured_share"
    if one.unknown is not None or one.shares is None:
        return line(rule, "unknown", one.unknown or "nothing was measured")
    held = f"held {one.shares.mean.held:.3f} {_where(one)}over {one.shares.covered_s:.1f} s"
    return _bounded(line, rule, one, one.shares.mean, TOLERANCE, held, seen, nobody)


def _burst(line: _Lines, one: Measured, seen: DutySeen, nobody: str) -> Check:
    rule = "duty.burst"
    if one.unknown is not None or one.shares is None:
        return line(rule, "unknown", one.unknown or "nothing was measured")
    worst = one.shares.worst
    if worst is None:
        return line(rule, "unknown", f"the ticks cover {one.shares.covered_s:.2f} s, less than the 2 s of a burst")
    held = f"held at most {worst.held:.3f} {_where(one)}in 2 s"
    return _bounded(line, rule, one, worst, BURST_TOLERANCE, held, seen, nobody)


def _where(one: Measured) -> str:
    return "" if one.device == "cpu" else f"of the GPU ({one.source}) "


def _bounded(
    line: _Lines, rule: str, one: Measured, bounds: Bounds, tolerance: float, held: str, seen: DutySeen, nobody: str
) -> Check:
    found = one.shares
    assert found is not None
    top = line.spec.duty + tolerance + SLACK
    allowed = f"at most {limit(line.spec.duty, tolerance):g} is allowed"
    told = f"{held}; {allowed}"
    evidence: dict[str, object] = {
        "device": one.device,
        "source": one.source,
        "limit": limit(line.spec.duty, tolerance),
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
        return line(rule, "unknown", f"{told}. {_late(found)}, so as little as {bounds.sure:.3f} is possible", evidence)
    if bounds.wanted > top:
        why = f"on a free machine it may be as much as {bounds.wanted:.3f}"
        return line(rule, "unknown", f"{told}, but {why}: {_late(found)}{_waited(found)}", evidence)
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


def _units(line: _Lines, seen: DutySeen, used: list[DutyReport]) -> Iterator[Check]:
    if line.spec.duty > 0.0 and used and all(report.share == 0.0 for report in used):
        detail = f"at duty {line.spec.duty:g} no report tells of a unit; idling always passes and proves little"
        yield line("duty.units", "warn", detail)
