"""Judge two conversations with a coordinator. Pure.

What was not reached because an answer did not come is unknown, and the missing answer alone has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence_protocol import Answer, Asked, ProtocolSeen
from oarbank_conformkit.faults import found
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.judge.run import own_words
from oarbank_conformkit.steps import ProtocolStep

PROTOCOL = 1
REQUEST, UNKNOWN_METHOD, NO_SHARED_VERSION = -32600, -32601, -32001

_NAMES = {
    "protocol.starts": "coordinator: initialize names protocol, module and capabilities",
    "protocol.time": "coordinator: answers in time",
    "protocol.verbs": "coordinator: answers every required verb",
    "protocol.unknown": "coordinator: refuses a method that nobody knows",
    "protocol.refuses": "coordinator: refuses what comes too early and versions it does not speak",
    "protocol.params": "coordinator: params.check says yes or no",
    "protocol.goldens": "coordinator: goldens build to the stages they name",
    "protocol.effects": "coordinator: operations have the effects that are declared",
    "protocol.pure": "coordinator: answers the same to the same",
    "protocol.clean": "coordinator: prints nothing between its answers",
    "protocol.ends": "coordinator: ends when it is told",
}

_Answered = tuple[Status, str]


def judge_protocol(module: Module, step: ProtocolStep, fixtures: Fixtures | None, seen: ProtocolSeen) -> list[Check]:
    """Return the checks of a coordinator."""
    if seen.refused is not None:
        why = f"could not be started: {seen.refused}. Look at coordinator.exec in the manifest."
        return [_check("protocol.starts", "fail", why)]
    answers: dict[str, _Answered] = {"protocol.starts": _starts(module, step, seen)}
    if seen.start is None or seen.start.result is None:
        return [_check(rule, *answer) for rule, answer in {**answers, "protocol.clean": _clean(seen)}.items()]
    answers["protocol.time"] = _time(seen)
    answers["protocol.verbs"] = _verbs(seen)
    answers["protocol.unknown"] = _unknown(seen)
    answers["protocol.refuses"] = _refuses(seen)
    answers["protocol.params"] = _params(seen)
    answers["protocol.goldens"] = _goldens(module, step, seen)
    if fixtures is not None and fixtures.ops:
        answers["protocol.effects"] = _effects(step, seen)
    answers["protocol.pure"] = _pure(seen)
    answers["protocol.clean"] = _clean(seen)
    answers["protocol.ends"] = _ends(seen)
    return [_check(rule, *answer) for rule, answer in answers.items()]


def _check(rule: str, status: Status, detail: str) -> Check:
    return check("protocol", rule, _NAMES[rule], status, detail)


def _starts(module: Module, step: ProtocolStep, seen: ProtocolSeen) -> _Answered:
    answer = seen.start
    if answer is None or not isinstance(answer.result, dict):
        told = "no answer" if answer is None else answer.shown()
        return "fail", f"initialize must be answered; found {told}{own_words(None, seen.stderr)}"
    result = answer.result
    if result.get("protocol_version") != PROTOCOL:
        return "fail", f"/protocol_version: must be {PROTOCOL}; found {found(result.get('protocol_version'))}"
    about = {"id": module.id, "version": module.version}
    if result.get("module") != about:
        return "fail", f"/module: must be {about}, as in the manifest; found {found(result.get('module'))}"
    there = result.get("capabilities")
    missing = sorted(step.coordinator.capabilities - set(there if isinstance(there, list) else []))
    if missing:
        return "fail", f"/capabilities: must hold {', '.join(missing)}, as the manifest says; found {found(there)}"
    return "pass", f"after {answer.took_s:.2f} s"


def _time(seen: ProtocolSeen) -> _Answered:
    if seen.silent is not None:
        return "fail", f"every request must be answered; found {seen.silent}{own_words(None, seen.stderr)}"
    return "pass", ""


def _verbs(seen: ProtocolSeen) -> _Answered:
    missing = [verb for verb, answer in seen.bare.items() if answer.code == UNKNOWN_METHOD]
    if missing:
        return "fail", f"{', '.join(missing)}: every module must answer it; found error {UNKNOWN_METHOD}"
    return _reached(list(seen.bare.values())) or ("pass", ", ".join(seen.bare))


def _unknown(seen: ProtocolSeen) -> _Answered:
    if seen.unknown is None or seen.unknown.missing is not None:
        return _not_reached(seen)
    if seen.unknown.code == UNKNOWN_METHOD:
        return "pass", ""
    return "fail", f"must be answered with error {UNKNOWN_METHOD}; found {seen.unknown.shown()}"


def _refuses(seen: ProtocolSeen) -> _Answered:
    early, stranger = seen.early, seen.stranger
    if early is None or stranger is None or early.missing is not None or stranger.missing is not None:
        return _not_reached(seen)
    if early.code != REQUEST:
        return "fail", f"params.check before initialize: must be error {REQUEST}; found {early.shown()}"
    if stranger.code != NO_SHARED_VERSION:
        return "fail", f"initialize with version 99: must be error {NO_SHARED_VERSION}; found {stranger.shown()}"
    supported = stranger.data.get("supported") if isinstance(stranger.data, dict) else None
    if not isinstance(supported, list) or PROTOCOL not in supported:
        return "fail", f"initialize with version 99: /error/data/supported must hold 1; found {found(supported)}"
    return "pass", ""


def _params(seen: ProtocolSeen) -> _Answered:
    for one in _of(seen, "params.check"):
        if one.answer.missing is not None:
            return _not_reached(seen)
        result = one.answer.result
        if not isinstance(result, dict) or not isinstance(result.get("ok"), bool):
            return "fail", f"{one.what}: must be answered with ok, true or false; found {one.answer.shown()}"
        if not result["ok"] and not result.get("errors"):
            return "fail", f"{one.what}: must name its errors where ok is false; found none"
    return "pass", ""


def _goldens(module: Module, step: ProtocolStep, seen: ProtocolSeen) -> _Answered:
    for one in _of(seen, "golden.list"):
        if one.answer.missing is not None:
            return _not_reached(seen)
        result = one.answer.result
        if not isinstance(result, dict) or not isinstance(result.get("goldens"), list):
            return "fail", f"golden.list, {one.what}: must be answered with goldens; found {one.answer.shown()}"
    built = [one for one in _of(seen, "spec.build") if one.golden is not None]
    for one in built:
        if one.answer.missing is not None:
            return _not_reached(seen)
        if (fault := _build_fault(module, step, one)) is not None:
            return "fail", f"{one.what}: {fault}"
    if not built:
        return "unknown", "golden.list names no golden for any class of nodes"
    return "pass", f"{len(built)} of them"


def _build_fault(module: Module, step: ProtocolStep, one: Asked) -> str | None:
    golden, result = one.golden or {}, one.answer.result
    specs = result.get("specs") if isinstance(result, dict) else None
    if not isinstance(specs, list) or len(specs) != 1 or not isinstance(specs[0], dict):
        return f"spec.build must give one spec for one job; found {one.answer.shown()}"
    stages = specs[0].get("stages")
    entries = [entry for entry in stages if isinstance(entry, dict)] if isinstance(stages, list) else []
    default = module.default_stage_name()
    built = [entry.get("stage") or default for entry in entries]
    named = golden.get("stages") or [default]
    if built != named:
        return f"spec.build must give the stages that it names, {found(named)}; found {found(built)}"
    file = next((known for known in step.goldens if known.name == golden.get("name")), None)
    if file is not None and len(entries) == 1 and entries[0].get("payload") != file.payload:
        return f"spec.build must give the payload of {file.path}; found {found(entries[0].get('payload'))}"
    return None


def _effects(step: ProtocolStep, seen: ProtocolSeen) -> _Answered:
    applied = [one for one in seen.first if one.op is not None]
    for one in applied:
        if one.answer.missing is not None:
            return _not_reached(seen)
        result = one.answer.result
        effects = result.get("effects") if isinstance(result, dict) else None
        if not isinstance(effects, list) or not all(isinstance(effect, dict) for effect in effects):
            return "fail", f"{one.what}: must be answered with a list of effects; found {one.answer.shown()}"
        declared = step.coordinator.operations[one.op.verb] if one.op else ()
        for kind in (effect.get("kind") for effect in effects):
            if kind not in declared:
                listed = ", ".join(declared) or "none"
                return "fail", f"{one.what}: effects must be declared in the manifest ({listed}); found {found(kind)}"
    if not applied:
        return "unknown", "none of the operations of the fixtures could be applied"
    return "pass", f"{len(applied)} operations"


def _pure(seen: ProtocolSeen) -> _Answered:
    for again, where in ((seen.again, "a second time"), (seen.afresh, "in a fresh process")):
        for one, other in zip(seen.first, again, strict=False):
            if other.missing is None and one.answer.missing is None and not one.answer.same(other):
                told = f"{_difference(one.answer, other)}"
                return "fail", f"{one.method}, {one.what}: must be answered the same {where}; found {told}"
    reached = [*seen.again, *seen.afresh]
    if len(reached) < 2 * len(seen.first) or any(answer.missing is not None for answer in reached):
        return _not_reached(seen)
    return "pass", f"{len(seen.first)} requests, three times each"


def _difference(one: Answer, other: Answer) -> str:
    for path, mine, theirs in _unequal(one.result, other.result, ""):
        return f"{path or '/'}: {found(mine, 60)}, then {found(theirs, 60)}"
    return f"{one.shown()}, then {other.shown()}"


def _unequal(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _unequal(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _unequal(*pair, f"{path}/{index}")
    elif one != other:
        yield path, one, other


def _clean(seen: ProtocolSeen) -> _Answered:
    if seen.noises:
        detail = f"stdout carries messages alone; found {seen.noises} other lines, such as {found(seen.noise[0])}"
        return "fail", f"{detail}. Send what is printed to stderr."
    return "pass", ""


def _ends(seen: ProtocolSeen) -> _Answered:
    stayed = [code for after_s, code in seen.ended if after_s is None]
    if stayed:
        return "fail", "must end after a shutdown and the end of stdin; found it still running"
    wrong = [code for _, code in seen.ended if code != 0]
    if wrong:
        return "fail", f"must end with exit 0 after a shutdown; found {wrong[0]}{own_words(None, seen.stderr)}"
    if not seen.ended:
        return _not_reached(seen)
    return "pass", f"after {max(after_s or 0.0 for after_s, _ in seen.ended):.2f} s"


def _of(seen: ProtocolSeen, method: str) -> list[Asked]:
    return [one for one in seen.first if one.method == method]


def _reached(answers: list[Answer]) -> _Answered | None:
    silent = [answer.missing for answer in answers if answer.missing is not None]
    return ("unknown", silent[0]) if silent else None


def _not_reached(seen: ProtocolSeen) -> _Answered:
    return "unknown", f"not reached: {seen.silent or 'an earlier request was not answered'}"
