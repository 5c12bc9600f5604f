"""Judge one run of `doctor --json`. Pure."""

from __future__ import annotations

from typing import Any

from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.faults import found
from oarbank_conformkit.judge.run import crashed, how_it_ended
from oarbank_sdk.contracts.judge import judge
from oarbank_sdk.events import doctor_line

PROTOCOL = 1

_NAMES = {
    "doctor.exit": "doctor: exits 0 in time",
    "doctor.document": "doctor: its last line is a runner-doctor-1 document",
    "doctor.protocol": "doctor: supports runner protocol 1",
    "doctor.platform": "doctor: names the platform it was told",
    "doctor.health": "doctor: is healthy, or says what is wrong",
}


def judge_doctor(seen: RunSeen, platform: str) -> list[Check]:
    """Return the doctor's checks; what its document cannot answer because there is none is unknown."""
    checks = [_exit(seen)]
    if crashed(seen) and not seen.stdout.strip():
        why = "it printed nothing, so protocol, platform and health are not known either"
        return [*checks, _check("doctor.document", "unknown", why)]
    if seen.exit is None and not seen.stdout.strip():
        return [*checks, _check("doctor.document", "unknown", "it had printed nothing when it was ended")]
    verdict = judge("runner-doctor-1", doctor_line(seen.stdout))
    if not verdict.valid:
        what = "no line at all" if not seen.stdout.strip() else verdict.faults[0].line("")
        last = found(doctor_line(seen.stdout)[-200:].decode("utf-8", errors="replace"))
        detail = (
            f"{what}; the last line was {last}" if seen.stdout.strip() else f"must be one line of JSON; found {what}"
        )
        detail += ". Print the document last, on one line."
        checks.append(_check("doctor.document", "fail", detail))
        rest = ("doctor.protocol", "doctor.platform", "doctor.health")
        return checks + [_check(rule, "unknown", "there is no valid document to read it from") for rule in rest]
    checks.append(_check("doctor.document", "pass", ""))
    return [*checks, _protocol(verdict.value), _platform(verdict.value, platform), _health(verdict.value)]


def _check(rule: str, status: Status, detail: str) -> Check:
    return check("runner", rule, _NAMES[rule], status, detail)


def _exit(seen: RunSeen) -> Check:
    if seen.exit == 0:
        return _check("doctor.exit", "pass", f"after {seen.took_s:.1f} s")
    return _check("doctor.exit", "fail", f"must exit 0 whatever it found; {how_it_ended(seen)}")


def _protocol(document: dict[str, Any]) -> Check:
    supported = document["runner_protocol"]["supported"]
    if PROTOCOL in supported:
        return _check("doctor.protocol", "pass", "")
    return _check("doctor.protocol", "fail", f"/runner_protocol/supported: must hold 1; found {found(supported)}")


def _platform(document: dict[str, Any], platform: str) -> Check:
    if "platform" not in (attrs := document.get("attrs", {})):
        return _check("doctor.platform", "skip", "attrs.platform is not given, and need not be")
    if attrs["platform"] == platform:
        return _check("doctor.platform", "pass", platform)
    detail = f"/attrs/platform: must be {platform} as in OARBANK_PLATFORM; found {found(attrs['platform'])}"
    return _check("doctor.platform", "fail", detail)


def _health(document: dict[str, Any]) -> Check:
    health = document["health"]
    if health == "healthy":
        return _check("doctor.health", "pass", health)
    reasons = [one for one in document.get("checks", []) if not one["ok"] and one.get("detail")]
    if not reasons:
        return _check("doctor.health", "fail", f"must name a failed check and its detail; found {health} and no reason")
    said = "; ".join(f"{one['name']}: {one['detail']}" for one in reasons)
    return _check("doctor.health", "warn", f"{health}: {said}")
