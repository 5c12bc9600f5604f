"""The report: every check, the verdict over all of them, and the document that machines read.

Pure. The verdict follows from the checks alone: any failure is a no (exit 1); else a must-rule that could not be told
is "could not tell" (exit 3, `ok` null); else yes. Advice and what does not apply never change it. With strict, not
being able to tell is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from oarbank_agent_check.jobs.host import Host
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import DutySeen
from oarbank_conformkit.fixtures import DutySpec
from oarbank_conformkit.judge.duty import Measured, limit, measured, used_reports
from oarbank_conformkit.rules import catalogue
from oarbank_conformkit.shares import Shares
from oarbank_sdk.events import DutyReport

KIND = "conformance-report-1"

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class DutyRun:
    """One duty spec that was run, with everything that was seen."""

    spec: DutySpec
    seen: DutySeen


@dataclass(frozen=True, slots=True)
class Report:
    """All that one run of the kit found out."""

    module_id: str | None
    module_version: str | None
    directory: str  # as the caller named it
    kit: str  # version
    host: Host
    started: float  # Unix seconds
    took_s: float
    checks: tuple[Check, ...]
    duty_runs: tuple[DutyRun, ...] = ()
    runner: bool = True  # False: the files alone were judged
    throttles: bool = False  # it declares what earns a duty
    only: tuple[str, ...] = ()  # patterns of the rules that were chosen; none: all of them

    @property
    def ok(self) -> bool | None:
        """True: conforms; False: does not; None: something that must hold could not be told."""
        if any(one.status == "fail" for one in self.checks):
            return False
        rules = catalogue()
        unknown = any(one.status == "unknown" and rules[one.rule].level == "must" for one in self.checks)
        return None if unknown else True

    @property
    def exit(self) -> int:
        """The exit code that follows: 0, 1 or 3."""
        ok = self.ok
        return 3 if ok is None else int(not ok)


def strictly(one: Check) -> Check:
    """Return a check as `--strict` wants it: one that could not be told has failed."""
    if one.status != "unknown":
        return one
    stricter = check(one.suite, one.rule, one.name, "fail", f"could not be told, which --strict refuses: {one.detail}")
    return replace(stricter, took_s=one.took_s, evidence=one.evidence)


def counts(checks: Sequence[Check]) -> dict[Status, int]:
    """Return how many checks ended in each status."""
    return {status: sum(one.status == status for one in checks) for status in STATUSES}


def document(report: Report) -> dict[str, Any]:
    """Return the report as a `conformance-report-1` document."""
    return {
        "report": KIND,
        "module": {"id": report.module_id, "version": report.module_version, "dir": report.directory},
        "kit": report.kit,
        **({"only": list(report.only)} if report.only else {}),
        "ok": report.ok,
        "exit": report.exit,
        "started": round(report.started, 3),
        "took_s": round(report.took_s, 3),
        "counts": counts(report.checks),
        "host": {
            "platform": report.host.platform,
            "python": report.host.python_version,
            "cpus": report.host.cpus,
        },
        "checks": [_check(one) for one in report.checks],
        "duty_specs": [_duty_run(run) for run in report.duty_runs],
    }


def _check(one: Check) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "suite": one.suite,
        "name": one.name,
        "status": one.status,
        "detail": one.detail,
        "rule": one.rule,
    }
    optional = {"took_s": one.took_s, "evidence": None if one.evidence is None else dict(one.evidence)}
    return entry | {key: value for key, value in optional.items() if value is not None}


def _duty_run(run: DutyRun) -> dict[str, Any]:
    used = used_reports(run.seen)
    return {
        "name": run.spec.name,
        "stage": run.spec.stage,
        "duty": run.spec.duty,
        "window_s": run.spec.window_s,
        "limit": limit(run.spec.duty),
        "reports": [_report(report) for report in used],
        "measured": _measured(run.seen, used),
    }


def _report(report: DutyReport) -> dict[str, Any]:
    return {
        "t": report.t,
        "share": report.share,
        "duty": report.duty,
        "device": report.device,
        "window_s": report.window_s,
        "longest_unit_s": report.longest_unit_s,
    }


def _measured(seen: DutySeen, used: list[DutyReport]) -> Mapping[str, Any]:
    first, *others = (_device(one) for one in measured(seen, used))
    return {**first, "others": others} if others else first


def _device(one: Measured) -> dict[str, Any]:
    if one.unknown is not None or one.shares is None:
        return {"device": one.device, "share": None, "reason": one.unknown or "nothing was measured"}
    return {"source": one.source, "device": one.device, "clock": one.clock, **_shares(one.shares)}


def _shares(found: Shares) -> Mapping[str, Any]:
    return {
        "share": round(found.mean.held, 6),
        "ticks": found.ticks,
        "worst_2s": None if found.worst is None else round(found.worst.held, 6),
        "tick_median_s": round(found.tick_median_s, 6),
        "tick_worst_s": round(found.tick_worst_s, 6),
        "waited_s": None if found.waited_s is None else round(found.waited_s, 3),
    }
