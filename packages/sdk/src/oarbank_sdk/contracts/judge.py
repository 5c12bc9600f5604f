"""Judge one document through the whole chain: bytes, JSON, schema, rules. The first layer that refuses it decides.

Two readers may treat a repeated key differently: programs that read what programs wrote take the last one, while what a
person wrote is refused, because one of the two lines was a mistake. So the policy belongs to the kind. Nothing else is
tolerated here that `strictjson` refuses. Looks at no file, no clock, no network. Needs `oarbank-sdk[contracts]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from oarbank_sdk import strictjson
from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.faults import Fault, found, pointer
from oarbank_sdk.contracts.rules import rule_faults, warnings
from oarbank_sdk.contracts.schema_faults import schema_faults

__all__ = ["PERSON_WRITTEN", "Fault", "Layer", "Verdict", "judge", "judge_value"]

Layer = Literal["bytes", "json", "schema", "semantics"]

PERSON_WRITTEN = frozenset({"conformance-1", "guard-config-1", "module-manifest-1"})
"""Contracts that a person writes: a repeated key is refused there, and the last one wins elsewhere."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the chain says of one document."""

    kind: str
    valid: bool
    layer: Layer  # that refuses it; `schema` for a valid one, since the schema says what a document may be
    value: Any  # what was read, also of a document that a later layer refuses; None where nothing could be read
    faults: list[Fault] = field(default_factory=list)  # empty when valid
    warnings: list[Fault] = field(default_factory=list)  # refuse nothing


def judge(kind: str, data: bytes | str, *, duplicates: Literal["refuse", "last"] | None = None) -> Verdict:
    """Judge the text of a document of `kind`.

    `duplicates` overrides the kind's policy on repeated keys. Raises `catalogue.UnknownKind` and never for a document,
    whatever its bytes.
    """
    catalogue.text(kind)
    try:
        value, oddities = strictjson.read(data)
    except strictjson.StrictJSONError as exc:
        layer: Layer = "bytes" if exc.layer == "bytes" else "json"
        return Verdict(kind, False, layer, None, [Fault("", exc.keyword, str(exc))])
    odd = [Fault(pointer(oddity.path), oddity.keyword, oddity.message) for oddity in oddities]
    refused = {"surrogate"}
    if duplicates == "refuse" or (duplicates is None and kind in PERSON_WRITTEN):
        refused.add("duplicate-key")
    if faults := [fault for fault in odd if fault.keyword in refused]:
        return Verdict(kind, False, "json", value, faults)
    tolerated = [fault for fault in odd if fault.keyword == "duplicate-key"]
    faults, layer = _value_faults(kind, value)
    if faults:
        return Verdict(kind, False, layer, value, faults, tolerated)
    return Verdict(kind, True, "schema", value, [], tolerated + warnings(kind, value))


def judge_value(kind: str, value: Any) -> list[Fault]:
    """Return what the schema and the rules of `kind` refuse in a value that is read already, such as one from TOML.

    Raises `catalogue.UnknownKind`.
    """
    return _value_faults(kind, value)[0]


def _value_faults(kind: str, value: Any) -> tuple[list[Fault], Layer]:
    faults = schema_faults(kind, value)
    # A NaN passes every bound, and a date of TOML every open place; the schema's own word comes first where both speak.
    places = {fault.pointer for fault in faults}
    faults += [fault for fault in _foreign(value, ()) if fault.pointer not in places]
    if faults:
        return faults, "schema"
    return rule_faults(kind, value), "semantics"


def _foreign(value: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield the parts of a value that JSON does not have, or that no strict reader follows."""
    if len(path) > strictjson.MAX_DEPTH:
        message = f"must be nested at most {strictjson.MAX_DEPTH} levels deep; found more"
        yield Fault(pointer(path[:1]), "depth", message)
    elif isinstance(value, dict):
        for key, child in value.items():
            if not isinstance(key, str):
                yield Fault(pointer(path), "json-value", f"must have text as keys; found {found(key)}")
            yield from _foreign(child, (*path, key))
    elif isinstance(value, list):
        for i, child in enumerate(value):
            yield from _foreign(child, (*path, i))
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Fault(pointer(path), "number-range", "must be a number that a double holds; found one beyond it")
    elif value is not None and not isinstance(value, (str, int)):
        yield Fault(pointer(path), "json-value", f"must be a JSON value; found a {type(value).__name__}")
