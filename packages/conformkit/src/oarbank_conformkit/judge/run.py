"""Judge the first run of a golden: how it ended, what it left, whether its digest is the expected one. Pure.

What other runs are compared by is here too: the payload of a result, its digest, and how a run ended in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.faults import found, sentence
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.result_schema import ResultSchema
from oarbank_sdk import canonical
from oarbank_sdk.contracts.faults import found as as_json
from oarbank_sdk.contracts.judge import judge

LAST_LINES = 5
"""Lines of a runner's stderr that a check shows: a traceback's last place and its reason."""


def judge_golden(
    module: Module, golden: Golden, seen: RunSeen, schema: ResultSchema | None = None
) -> tuple[list[Check], str | None]:
    """Return the checks of the first run, and its digest where there is one.

    `schema` is that of the results; None where the manifest names none that is there.
    """
    checks = [_exit(golden, seen)]
    if crashed(seen):
        why = "the runner did not come to work; its result, a second run and a stop were not judged"
        return [*checks, _check("golden.result", f"golden {golden.name}: the rest is judged", "unknown", why)], None
    payload, fault = result_payload(module, seen)
    name = f"golden {golden.name}: result.json keeps its contract"
    if payload is None:
        checks.append(_check("golden.result", name, "fail", fault))
        name = f"golden {golden.name}: digest is the expected one"
        return [*checks, _check("golden.digest", name, "unknown", "there is no valid result to hash")], None
    checks.append(_check("golden.result", name, "pass", ""))
    checks += [_whole(golden, seen), _payload(golden, schema, payload)]
    digest, fault = payload_digest(module, payload)
    return [*checks, _digest(module, golden, payload, digest, fault)], digest


def compared(module: Module, first: str | None, seen: RunSeen) -> tuple[Status, str]:
    """Say whether a later run of the same task gave the first run's digest, and why not."""
    if first is None:
        return "unknown", "the first run gave no digest to compare with"
    if seen.exit != 0:
        return "fail", f"must exit 0 as the first run did; {how_it_ended(seen)}"
    payload, fault = result_payload(module, seen)
    second, fault = (None, fault) if payload is None else payload_digest(module, payload)
    if second is None:
        return "fail", fault
    if second == first:
        return "pass", f"{first[:12]}... again"
    return "fail", f"must be the first run's {first}; found {second}"


def crashed(seen: RunSeen) -> bool:
    """Say whether the runner never came to work: it did not start, or left no phase, no result and no word."""
    if seen.refused is not None:
        return True
    return seen.exit not in (0, None) and not seen.phase and seen.result is None and seen.failure is None


def how_it_ended(seen: RunSeen) -> str:
    """Return a clause that says how a run ended, with its own words where it left some."""
    if seen.refused is not None:
        return f"could not be started: {seen.refused}. Look at runner.exec in the manifest."
    if seen.exit is None:
        return f"found it still running after {seen.limit_s:g} s"
    code = f"signal {-seen.exit}" if seen.exit < 0 else f"exit {seen.exit}"
    return f"found {code} after {seen.took_s:.1f} s{own_words(seen.failure, seen.stderr)}"


def own_words(failure: bytes | None, stderr: str) -> str:
    """Return what failure.json or the end of stderr says, as a clause that ends a detail; empty where neither does."""
    if failure is not None:
        verdict = judge("runner-failure-1", failure)
        if verdict.valid:
            detail = verdict.value.get("detail", "")
            return f"; failure.json: {verdict.value['reason']}{': ' if detail else ''}{_one_line(detail)}"
        return f"; failure.json is not valid: {verdict.faults[0].line('')}"
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()][-LAST_LINES:]
    if len(lines) < 2:
        return "".join(f"; last line of stderr: {line.strip()[:160]}" for line in lines)
    return "; last lines of stderr:\n" + "\n".join(map(_both_ends, lines))


def _both_ends(line: str) -> str:
    """Shorten a long line in its middle: in a traceback the file's name and its line number come last."""
    return line if len(line) <= 120 else f"{line[:40]} … {line[-77:]}"


def _one_line(text: str) -> str:
    return " ".join(text.split())[:160]


def result_payload(module: Module, seen: RunSeen) -> tuple[Mapping[str, Any] | None, str]:
    """Return the payload of a valid result.json, or None and what is wrong."""
    document, fault = result_document(module, seen)
    return (None, fault) if document is None else (document["payload"], "")


def result_document(module: Module, seen: RunSeen) -> tuple[Mapping[str, Any] | None, str]:
    """Return a valid result.json, or None and what is wrong."""
    if seen.result is None:
        words = own_words(seen.failure, seen.stderr) if seen.exit == 0 else ""  # another exit has told them already
        return None, f"must be there; found no result.json{words}"
    verdict = judge("result-envelope-1", seen.result)
    if not verdict.valid:
        return None, f"result.json: {verdict.faults[0].line('')}"
    wanted = f"{module.short}/result@{module.schema_version}"
    if verdict.value["schema"] != wanted:
        return None, f"result.json: /schema: must be {wanted}; found {found(verdict.value['schema'])}"
    if verdict.value["module_version"] != module.version:
        told = found(verdict.value["module_version"])
        return None, f"result.json: /module_version: must be {module.version}; found {told}"
    if seen.missing_files:
        name = found(seen.missing_files[0])
        return None, f"result.json: /artifacts: local must be a regular file in the workdir; found none at {name}"
    return verdict.value, ""


def payload_digest(module: Module, payload: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the digest over the fields that the manifest names, or None and what is wrong."""
    if not module.digest_over:
        return None, "oarbank-module.toml: /results/digest/over: must name what is compared; found none"
    for field in module.digest_over:
        if field not in payload:
            return None, f"result.json: /payload: must hold {field}, which results.digest.over names; found no such key"
    try:
        return canonical.sha256({field: payload[field] for field in module.digest_over}), ""
    except canonical.CanonicalError as exc:
        return None, f"result.json: /payload: {exc}"


def payload_fault(schema: ResultSchema | None, payload: Mapping[str, Any]) -> str | None:
    """Return what the schema of the results refuses in a payload, and what to edit; None where nothing is refused."""
    faults = [] if schema is None else schema.faults(payload)
    if schema is None or not faults:
        return None
    told = "; ".join(
        f"/payload{fault.line('')}" if fault.pointer else f"/payload: {fault.message}" for fault in faults[:3]
    )
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return f"result.json: {told}{more}, by {schema.path}. Correct the runner, or the schema if the result is right."


def _payload(golden: Golden, schema: ResultSchema | None, payload: Mapping[str, Any]) -> Check:
    name = f"golden {golden.name}: its payload keeps the schema of the results"
    if schema is None:
        return _check("golden.payload", name, "skip", "the manifest names no schema in results.schema that is there")
    if schema.fault is not None:
        detail = f"{schema.path}: {sentence(schema.fault)} Correct the schema; no payload was judged by it."
        return _check("golden.payload", name, "fail", detail)
    fault = payload_fault(schema, payload)
    return _check("golden.payload", name, "pass" if fault is None else "fail", schema.path if fault is None else fault)


def _check(rule: str, name: str, status: Status, detail: str) -> Check:
    return check("runner", rule, name, status, detail)


def _exit(golden: Golden, seen: RunSeen) -> Check:
    name = f"golden {golden.name}: exits 0"
    if seen.exit == 0:
        return _check("golden.exit", name, "pass", f"after {seen.took_s:.1f} s")
    return _check("golden.exit", name, "fail", f"must exit 0; {how_it_ended(seen)}")


def _whole(golden: Golden, seen: RunSeen) -> Check:
    name = f"golden {golden.name}: result.json appears whole"
    if seen.torn is None:
        return _check("golden.whole", name, "pass", "")
    advice = "Write another file beside it and rename that (replace_text does it)."
    return _check("golden.whole", name, "fail", f"must never be seen in part; found {seen.torn}. {advice}")


def _digest(module: Module, golden: Golden, payload: Mapping[str, Any], digest: str | None, fault: str) -> Check:
    name = f"golden {golden.name}: digest is the expected one"
    if digest is None:
        return _check("golden.digest", name, "fail", fault)
    if golden.digest_version != module.digest_version:
        detail = (
            f"{golden.path}: /expected/digest_version: must be the manifest's {module.digest_version}; "
            f"found {golden.digest_version}. Correct it there, with the digest of that version."
        )
        return _check("golden.digest", name, "fail", detail)
    if digest == golden.digest:
        return _check("golden.digest", name, "pass", f"{digest[:12]}...")
    over = ", ".join(module.digest_over)
    shown = as_json({field: payload[field] for field in module.digest_over})
    detail = (
        f"must be {golden.digest} over {over}, as {golden.path} says; found {digest} of {shown}. "
        f"Look at the result; if it is right, write this digest into {golden.path}."
    )
    return _check("golden.digest", name, "fail", detail)
