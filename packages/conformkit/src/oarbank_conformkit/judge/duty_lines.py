"""What all checks of a duty spec share: their names, their limits, and which reports speak of the spec's own duty.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import Change, DutySeen
from oarbank_conformkit.fixtures import DutySpec
from oarbank_conformkit.judge.stop import ACKNOWLEDGE_S
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

NO_WORK = 0.02
"""A share this small is rounding."""

WAKE_S = ACKNOWLEDGE_S
"""Seconds from the nudge of a larger duty to the first work of a runner that waited: as for a stop."""


def limit(duty: float, tolerance: float = TOLERANCE) -> float:
    """Return the largest share that passes, as a person reads it."""
    return round(duty + tolerance, 6)


def began(report: DutyReport) -> float:
    """Return the Unix second in which a report's interval began; its end where it gives no length."""
    return report.t - (report.window_s or 0.0)


def names(report: DutyReport, duty: float) -> bool:
    """Say whether a report names a duty as the one asked."""
    return report.duty is not None and abs(report.duty - duty) <= ASKED_SLACK


def took_early(report: DutyReport, change: Change) -> bool:
    """Say whether a report tells that a duty of 0 was held before its nudge: it began there, and holds no work.

    One that holds work began under the duty before, and spans two.
    """
    unasked = change.written_wall - BEGAN_SLACK_S <= began(report) < change.nudging_wall - BEGAN_SLACK_S
    return unasked and report.window_s is not None and names(report, change.duty) and report.share <= NO_WORK


def longest_unit_s(seen: DutySeen) -> float:
    """Return the longest unit that any report tells of; 0.0 where none does."""
    return max((report.longest_unit_s or 0.0 for report in seen.reports), default=0.0)


def used_reports(seen: DutySeen) -> list[DutyReport]:
    """Return the reports that are judged by the spec's duty.

    They began after it was written, ended after the settling second, and began before the next duty was nudged; one
    that names that duty already is not of this one.
    """
    return [report for report in seen.reports if _used(report, seen)]


def _used(report: DutyReport, seen: DutySeen) -> bool:
    if seen.changes:
        change = seen.changes[0]
        if began(report) >= change.nudging_wall - BEGAN_SLACK_S:
            return False
        if names(report, change.duty) and report.t > change.written_wall:
            return False
    if report.window_s is None:
        return report.t >= seen.nudged_wall + REPORT_WAIT_S
    return began(report) >= seen.written_wall - BEGAN_SLACK_S and report.t > seen.nudged_wall + SETTLE_S


class Lines:
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
            "duty.reports_true": "reports at least what the kit measured",
            "duty.reports_seen": "what it reports can be seen",
            "duty.reports_timely": "reports in time",
            "duty.reports_apart": "no report spans two duties",
            "duty.nudge": "reads its control document after a nudge alone",
            "duty.follows": "holds a duty of 0 a second after its nudge",
            "duty.wakes": f"works again within {WAKE_S:g} s of a larger duty",
            "duty.switches": "holds a lower duty a second after its nudge",
            "duty.stop": "stops while holding the duty",
            "duty.units": "does units while it is measured",
        }

    def __call__(self, rule: str, status: Status, detail: str, evidence: Mapping[str, object] | None = None) -> Check:
        """Return one check."""
        return check("runner", rule, f"{self.title}: {self._names[rule]}", status, detail, evidence)
