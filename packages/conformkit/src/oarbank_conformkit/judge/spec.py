"""Judge the run of a runner spec against what its author expects. Pure."""

from __future__ import annotations

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.faults import found
from oarbank_conformkit.fixtures import RunnerSpec
from oarbank_conformkit.judge.run import how_it_ended, payload_fault, result_document
from oarbank_conformkit.result_schema import ResultSchema
from oarbank_sdk.contracts.judge import judge


def judge_spec(module: Module, spec: RunnerSpec, seen: RunSeen, schema: ResultSchema | None = None) -> list[Check]:
    """Return the checks of one runner spec."""
    name = f"runner spec {spec.name}"
    if seen.exit != spec.exit:
        detail = f"must exit {spec.exit}; {how_it_ended(seen)}"
        return [_check("spec.exit", f"{name}: exits {spec.exit}", "fail", detail)]
    ended = _check("spec.exit", f"{name}: exits {spec.exit}", "pass", f"after {seen.took_s:.1f} s")
    rest = [_failure(name, spec, seen)] if spec.exit or spec.reason is not None else []
    if spec.exit == 0 or spec.artifacts is not None:
        rest.append(_result(name, module, spec, seen, schema))
    return [ended, *rest]


def _result(name: str, module: Module, spec: RunnerSpec, seen: RunSeen, schema: ResultSchema | None) -> Check:
    name = f"{name}: leaves its result"
    document, fault = result_document(module, seen)
    if document is None:
        return _check("spec.result", name, "fail", fault)
    if (broken := payload_fault(schema, document["payload"])) is not None:
        return _check("spec.result", name, "fail", broken)
    there = [artifact["name"] for artifact in document.get("artifacts", [])]
    missing = [artifact for artifact in spec.artifacts or () if artifact not in there]
    if missing:
        listed = ", ".join(there) or "none"
        return _check("spec.result", name, "fail", f"/artifacts: must hold {', '.join(missing)}; found {listed}")
    return _check("spec.result", name, "pass", ", ".join(there))


def _failure(name: str, spec: RunnerSpec, seen: RunSeen) -> Check:
    name = f"{name}: says why it failed"
    if seen.failure is None:
        return _check("spec.failure", name, "fail", "must leave failure.json; found none")
    verdict = judge("runner-failure-1", seen.failure)
    if not verdict.valid:
        return _check("spec.failure", name, "fail", f"failure.json: {verdict.faults[0].line('')}")
    reason = verdict.value["reason"]
    if spec.reason not in (None, reason):
        return _check("spec.failure", name, "fail", f"/reason: must be {spec.reason}; found {found(reason)}")
    return _check("spec.failure", name, "pass", reason)


def _check(rule: str, name: str, status: Status, detail: str) -> Check:
    return check("runner", rule, name, status, detail)
