"""The coordinator's verbs: params to jobs, jobs to specs, results to verdicts, an operation to effects. Pure.

What a prompt or a payload may hold is payload.py's; here is how a list of prompts becomes jobs, under which keys, and
when a result is taken. The bundle's own words (ids, goldens) are given; coordinator_program.py reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from oarbank_llmserve.job import MAX_PER_JOB, MAX_SEED, SHORT_NAME, STAGES, Refusal
from oarbank_llmserve.payload import FOR_EACH, Bad, checked, normalised, read_payload, samples, shown, whole
from oarbank_llmserve.result import COMPLETIONS_NAME, RESULT_SCHEMA
from oarbank_sdk import canonical
from oarbank_sdk.module import InvalidParams, Verb, digest, field, job_key

BATCH = "batch"
DEFAULT_PER_JOB = 8
OPERATION = "queue_prompts"
OF_A_PAYLOAD = ("prompts", "model", "backend", "longest_ms", "memory_gb", *FOR_EACH)
OF_AN_OPERATION = (*OF_A_PAYLOAD, "per_job", "campaign_id", "name", "target_node")

_CAMPAIGN = re.compile(r"[a-z][a-z0-9_]{3,40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the module's files say: ids of the manifest, what digests are over, the goldens."""

    module_id: str
    compat: str
    digest_version: int
    digest_over: tuple[str, ...]
    goldens: tuple[Mapping[str, Any], ...]


def verbs(bundle: Bundle) -> dict[str, Verb]:
    """Every verb of the module, as `oarbank_sdk.module.serve` takes them."""
    return {
        "params.check": params_check,
        "job.plan": job_plan,
        "spec.build": spec_build,
        "result.evaluate": lambda params: result_evaluate(params, bundle),
        "golden.list": lambda params: golden_list(params, bundle),
        "result.merge": result_merge,
        "op.plan": lambda params: op_plan(params, bundle),
        "op.apply": lambda params: op_apply(params, bundle),
    }


# ---- params to jobs to specs ----


def params_check(params: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the params of a study hold: those of an operation, without its campaign."""
    try:
        return {"ok": True, "normalized_params": _params(field(params, "params", dict), OF_A_PAYLOAD), "errors": []}
    except Bad as bad:
        return {"ok": False, "errors": [_told(bad)]}


def job_plan(params: Mapping[str, Any]) -> dict[str, Any]:
    """One job for each `per_job` prompts, in their order."""
    try:
        asked = _params(field(params, "params", dict), OF_A_PAYLOAD)
    except Bad as bad:
        raise _invalid(bad, "/params") from None
    return {
        "jobs": [
            {"key_inputs": part, "datasets": [], "stages": [BATCH], "label": f"part {index}"}
            for index, part in enumerate(parts(asked))
        ]
    }


def spec_build(params: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of each job is its key inputs: what decides a result is all that a runner is told."""
    specs = []
    for index, job in enumerate(field(params, "jobs", list)):
        where = f"/jobs/{index}"
        if not isinstance(job, dict):
            raise InvalidParams(f"{where}: must be an object", where)
        specs.append(_spec(job, where))
    return {"specs": specs}


def _spec(job: Mapping[str, Any], where: str) -> dict[str, Any]:
    inputs = field(job, "key_inputs", dict)
    stages = []
    for stage in field(job, "stages", list, []) or [None]:
        if stage not in (None, *STAGES):
            raise InvalidParams(f"{where}/stages: must hold {' or '.join(STAGES)}", f"{where}/stages")
        try:
            checked(stage or STAGES[0], inputs)
        except Bad as bad:
            raise _invalid(bad, f"{where}/key_inputs") from None
        named = {} if stage is None else {"stage": stage}
        stages.append({**named, "payload": inputs, "datasets": [], "mounts": {}})
    return {"key_inputs": inputs, "spec_version": 1, "stages": stages}


def _params(params: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The one form of what a person asks for, `per_job` said. Raises `Bad`."""
    known = (*known, "per_job")
    for name in params:
        if name not in known:
            near = get_close_matches(name, known, 1)
            raise Bad(f"payload: /{shown(name)}", f"must be a known key{f'; did you mean {near[0]}?' if near else ''}")
    checked(BATCH, dict(params))
    return {**normalised(params), "per_job": whole(params, "per_job", 1, MAX_PER_JOB) or DEFAULT_PER_JOB}


def parts(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The payloads of the jobs.

    A prompt's seed is the batch's plus its number, so a part of sampled prompts says where it begins: the split
    changes no text. Where nothing is sampled no seed is said, so that equal parts have equal keys.
    """
    shared = {key: asked[key] for key in OF_A_PAYLOAD if key in asked and key not in ("prompts", "seed")}
    prompts, per_job, sampled = asked["prompts"], asked["per_job"], samples(asked)
    for first in range(0, len(prompts), per_job):
        seed = {"seed": min(asked.get("seed", 0) + first, MAX_SEED)} if sampled else {}
        yield {**shared, **seed, "prompts": prompts[first : first + per_job]}


# ---- results ----


def result_evaluate(params: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """Take a self-test whose texts are the golden's, and a batch whose counts fit its spec."""
    spec, result = field(params, "spec", dict), field(params, "result", dict)
    stage = field(params, "stage", str, None) or field(spec, "stage", str, None) or STAGES[0]
    if stage not in STAGES:
        raise InvalidParams(f"/stage: must be {' or '.join(STAGES)}", "/stage")
    job = read_payload(stage, spec.get("payload"))
    if isinstance(job, Refusal):
        return _verdict("fail_permanent", job.reason, job.detail)
    payload = result.get("payload")
    if result.get("schema") != RESULT_SCHEMA or not isinstance(payload, dict):
        return _verdict("reject", f"{SHORT_NAME}/bad_result", f"schema: must be {RESULT_SCHEMA}, around a payload")
    fault = _counts_fault(payload, len(job.prompts), sum(prompt.max_tokens for prompt in job.prompts))
    if fault is None:
        fault = _texts_fault(payload, len(job.prompts)) if stage == STAGES[0] else _artifact_fault(result)
    if fault is not None:
        return _verdict("reject", f"{SHORT_NAME}/bad_result", fault)
    said = _said(payload)
    if stage != STAGES[0]:
        return said
    found = digest(payload, bundle.digest_over)
    expected = _expected(spec["payload"], bundle)
    if expected not in (None, found):
        return _verdict("reject", f"{SHORT_NAME}/wrong_digest", f"digest: must be {expected}; found {found}")
    return {**said, "digest": found, "digest_version": bundle.digest_version}


def _verdict(verdict: str, reason: str, summary: str) -> dict[str, Any]:
    return {"verdict": verdict, "reason": reason, "summary": summary[:500], "fields": {}}


def _said(payload: Mapping[str, Any]) -> dict[str, Any]:
    failed = f", {payload['failed']} of them without a completion" if payload["failed"] else ""
    return {
        "verdict": "accept",
        "reason": "ok",
        "summary": f"{payload['prompts']} prompts{failed}, {payload['tokens']} tokens",
        "fields": {"prompts": payload["prompts"], "tokens": payload["tokens"]},
    }


def _counts_fault(payload: Mapping[str, Any], prompts: int, most_tokens: int) -> str | None:
    limits = (("prompts", prompts, prompts), ("failed", 0, prompts - 1), ("tokens", 0, most_tokens))
    for key, least, most in limits:
        value = payload.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return f"payload: /{key}: must be {least} to {most} for this spec; found {shown(value)}"
    return None


def _texts_fault(payload: Mapping[str, Any], prompts: int) -> str | None:
    texts = payload.get("texts")
    if not isinstance(texts, list) or len(texts) != prompts or not all(isinstance(text, str) for text in texts):
        return f"payload: /texts: must be {prompts} texts"
    return None


def _artifact_fault(result: Mapping[str, Any]) -> str | None:
    artifacts = result.get("artifacts")
    names = [one.get("name") for one in artifacts if isinstance(one, dict)] if isinstance(artifacts, list) else []
    if COMPLETIONS_NAME not in names:
        return f"artifacts: must hold {COMPLETIONS_NAME}"
    found = result["payload"].get("digest")
    if not isinstance(found, str) or not _SHA256.fullmatch(found):
        return f"payload: /digest: must be 64 hex digits; found {shown(found)}"
    return None


def _expected(payload: Any, bundle: Bundle) -> str | None:
    """The digest of the golden that is this very task."""
    try:
        same = [one for one in bundle.goldens if canonical.dumps(one["payload"]) == canonical.dumps(payload)]
    except canonical.CanonicalError:
        return None
    return same[0]["expected"]["digest"] if same else None


def result_merge(params: Mapping[str, Any]) -> dict[str, Any]:
    """Both stages stand alone, so an evaluation has one result: the batch's, where there is one."""
    stages = field(params, "stages", dict)
    for stage in (BATCH, STAGES[0]):
        if isinstance(stages.get(stage), dict):
            return {"result": stages[stage]}
    raise InvalidParams(f"/stages: must hold the result of {' or '.join(STAGES)}", "/stages")


def golden_list(params: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """The goldens that a node of this class runs."""
    platform = field(field(params, "node_class", dict, {}), "platform", str, None)
    names = (None, platform, (platform or "").partition("-")[0])
    kept = [one for one in bundle.goldens if platform is None or _meant_for(one, names)]
    return {"goldens": [_golden(one) for one in kept]}


def _meant_for(golden: Mapping[str, Any], names: Sequence[str | None]) -> bool:
    platforms = golden.get("platforms")
    return platforms is None or any(name in platforms for name in names)


def _golden(golden: Mapping[str, Any]) -> dict[str, Any]:
    listed = {
        "name": golden["name"],
        "key_inputs": golden["payload"],
        "datasets": golden.get("datasets", []),
        "stages": [golden.get("stage") or STAGES[0]],
        "expected": golden["expected"],
    }
    platforms = golden.get("platforms")
    return listed if platforms is None else {**listed, "platforms": platforms}


# ---- the operation ----


def op_plan(params: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """What `op_apply` will do, said before it is done."""
    asked = _operation(params)
    try:
        effects, _, message = _queue(asked, bundle)
    except Bad as bad:
        raise _invalid(bad, "/params") from None
    return {"summary": message, "targets": [], "effects": effects}


def op_apply(params: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """A campaign and its jobs; params that do not hold are answered with where and why, and no effect."""
    asked = _operation(params)
    try:
        effects, result, message = _queue(asked, bundle)
    except Bad as bad:
        told = _told(bad)
        line = f"{told['path']}: {told['message']}"
        return {"effects": [], "response": "errors", "message": line[:500], "errors": [told]}
    return {"effects": effects, "response": "toast", "message": message, "errors": [], "result": result}


def _operation(params: Mapping[str, Any]) -> dict[str, Any]:
    if (verb := field(params, "verb", str)) != OPERATION:
        raise InvalidParams(f"/verb: must be {OPERATION}; found {shown(verb)}", "/verb")
    return field(params, "params", dict)


def _queue(params: Mapping[str, Any], bundle: Bundle) -> tuple[list[dict[str, Any]], dict[str, Any], str]:
    asked = _params(params, OF_AN_OPERATION)
    name = _words(params, "name", 80)
    node = _words(params, "target_node", 200)
    said = {key: value for key, value in (("name", name), ("target_node", node)) if value is not None}
    campaign = _campaign(params.get("campaign_id")) or f"c_llm_{canonical.sha256({**asked, **said})[:10]}"
    jobs = [_job(part, index, node, bundle) for index, part in enumerate(parts(asked))]
    prompts = len(asked["prompts"])
    model = asked.get("model", asked["backend"])
    create = {"campaign_id": campaign, "name": name or f"{prompts} prompts for {model}"[:80]}
    create |= {"priority": 0, "weight": 1}
    effects = [
        {"kind": "campaigns.create", "args": create},
        {"kind": "jobs.enqueue", "args": {"campaign_id": campaign, "jobs": jobs}},
    ]
    message = f"{prompts} prompts for {model} in {len(jobs)} jobs of campaign {campaign}"
    return effects, {"campaign_id": campaign, "jobs": len(jobs), "prompts": prompts}, message


def _job(part: dict[str, Any], index: int, node: str | None, bundle: Bundle) -> dict[str, Any]:
    key = job_key(bundle.module_id, bundle.compat, part, BATCH)
    # Two equal parts have one key; the label keeps both, and puts the parts in order.
    job = {"job_key": key, "spec": part, "stage": BATCH, "labels": {"part": index}}
    return job if node is None else {**job, "target_node": node}


def _campaign(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _CAMPAIGN.fullmatch(value):
        raise Bad("payload: /campaign_id", "must be a small letter and 3 to 40 of a to z, 0 to 9 and _", value)
    return value


def _words(params: Mapping[str, Any], key: str, most: int) -> str | None:
    value = params.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= most or not value.isprintable():
        raise Bad(f"payload: /{key}", f"must be 1 to {most} printable characters", value)
    return value


def _told(bad: Bad) -> dict[str, str]:
    return {
        "path": bad.where.removeprefix("payload: ").removeprefix("payload"),
        "message": bad.what,
        "code": "bad_spec",
    }


def _invalid(bad: Bad, root: str) -> InvalidParams:
    told = _told(bad)
    return InvalidParams(f"{root}{told['path']}: {told['message']}", f"{root}{told['path']}")
