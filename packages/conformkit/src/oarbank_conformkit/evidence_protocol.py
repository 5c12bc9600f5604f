"""What the suite of the module protocol asks, and what it saw: plain values between the talk and its judge.

Pure. What is asked depends on earlier answers alone: each golden that golden.list names is built.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from oarbank_agent_check.jobs.coordinator import Answer
from oarbank_conformkit.fixtures import Fixtures, Operation
from oarbank_conformkit.steps import ProtocolStep
from oarbank_sdk.module import REQUIRED

__all__ = ["REQUIRED", "UNKNOWN_METHOD", "Answer", "Ask", "Asked", "ProtocolSeen", "asked"]

UNKNOWN_METHOD = "conform.no_such_method"

MOST_GOLDENS = 50
"""Goldens of one node class that are built; a module with more proves nothing new with them."""


Ask = Callable[[str, Mapping[str, Any]], Answer]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that is sent again, what it was for, and its first answer."""

    what: str
    method: str
    params: Mapping[str, Any]
    answer: Answer
    golden: Mapping[str, Any] | None = None  # as golden.list named it, for the spec.build of it
    op: Operation | None = None


@dataclass(slots=True)
class ProtocolSeen:
    """Two conversations with a coordinator; what was not reached is None or empty."""

    refused: str | None = None
    silent: str | None = None  # the first answer that did not come: why
    start: Answer | None = None
    bare: dict[str, Answer] = field(default_factory=dict)  # each required verb with {}
    unknown: Answer | None = None
    first: list[Asked] = field(default_factory=list)
    again: list[Answer] = field(default_factory=list)  # in the same process
    afresh: list[Answer] = field(default_factory=list)  # in another
    early: Answer | None = None  # a verb before initialize
    stranger: Answer | None = None  # initialize with a version that nobody shares
    ended: list[tuple[float | None, int | None]] = field(default_factory=list)  # seconds and status; None: it stayed
    noises: int = 0
    noise: list[str] = field(default_factory=list)
    stderr: str = ""


def asked(fixtures: Fixtures | None, step: ProtocolStep, ask: Ask) -> Iterator[Asked]:
    """Ask everything whose answers must be pure, one by one."""
    told = Fixtures("") if fixtures is None else fixtures
    for index, params in enumerate(told.params or ({},)):
        yield _one(ask, f"params #{index}" if told.params else "params {}", "params.check", {"params": params})
    built: set[str] = set()
    for node in told.node_classes or tuple({"platform": one} for one in step.platforms):
        listed = _one(ask, f"node class {node.get('platform') or 'any'}", "golden.list", {"node_class": node})
        yield listed
        for golden in _goldens(listed.answer)[:MOST_GOLDENS]:
            if (key := json.dumps(golden, sort_keys=True)) not in built:
                built.add(key)
                yield _build(ask, told, golden)
    for op in told.ops:
        if op.verb in step.coordinator.operations:
            given = {"verb": op.verb, "params": op.params, "actor": "conform"}
            params = given if op.target is None else {**given, "target": op.target}
            answer = ask("op.apply", params)
            yield Asked(f"op #{op.index} {op.verb}", "op.apply", params, answer, op=op)


def _one(ask: Ask, what: str, method: str, params: Mapping[str, Any]) -> Asked:
    return Asked(what, method, params, ask(method, params))


def _goldens(answer: Answer) -> list[Mapping[str, Any]]:
    listed = answer.result.get("goldens") if isinstance(answer.result, dict) else None
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _build(ask: Ask, told: Fixtures, golden: Mapping[str, Any]) -> Asked:
    job = {key: golden.get(key) for key in ("key_inputs", "datasets", "stages") if golden.get(key) is not None}
    params = {"jobs": [job], "datasets": told.datasets, "target_spec_version": 1}
    return Asked(f"golden {golden.get('name')}", "spec.build", params, ask("spec.build", params), golden=golden)
