"""The cross rules of a module's manifest that concern runners: what one table says about another.

Takes a manifest that its schema accepts. A capability that is not known is kept and only warned about, because a later
host may know it. So is a key, and that only where it looks like a known one: tables are open, and hosts have keys of
their own. Pure, standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.faults import Fault, found, nearest, pointer
from oarbank_sdk.paths import portable_path_fault

RUNNER_CAPABILITIES = frozenset(
    {
        "cancellable",
        "freeze_ok",
        "cooperative_pause",
        "resumable",
        "progress_events",
        "deterministic_output",
        "cooperative_throttle",
        "checkpoint",
    }
)

STAGES_CORE = (2, 3)
"""The first core version that reads `determinism` and `default` of a stage."""

_BUNDLE = "{bundle}/"

# What the host sets itself; Windows folds the case of these names.
_RESERVED = frozenset(
    {
        "ALL_PROXY",
        "APPDATA",
        "COMSPEC",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "LANG",
        "LC_ALL",
        "LOCALAPPDATA",
        "NO_PROXY",
        "NUMBER_OF_PROCESSORS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PYTHONUTF8",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "USERPROFILE",
        "WINDIR",
    }
)
_RESERVED_PREFIX = "OARBANK_"


def manifest_faults(value: Any) -> Iterator[Fault]:
    """Yield what the cross rules refuse."""
    for name in ("coordinator", "runner"):
        if value.get(name) is not None:
            yield from _program((name,), value[name])
    stages = value.get("stages", [])
    yield from _stage_names(stages)
    yield from _standalone(stages)
    yield from _comparing(value, stages)
    yield from _core(value, stages)
    if value.get("coordinator") is not None:
        yield from _verbs(value, stages)


def manifest_warnings(value: Any) -> Iterator[Fault]:
    """Yield advice: runner capabilities that no host is known to read, and keys that look misspelt."""
    for i, name in enumerate(value["runner"].get("capabilities", [])):
        if name not in RUNNER_CAPABILITIES:
            message = f"must be a known capability to have an effect; found {name}{nearest(name, RUNNER_CAPABILITIES)}"
            yield Fault(pointer(("runner", "capabilities", i)), "unknown-capability", message)
    root = catalogue.schema("module-manifest-1")
    yield from _misspelt(value, root, root, ())


def _misspelt(value: Any, schema: Any, root: Any, at: tuple[str | int, ...]) -> Iterator[Fault]:
    """Walk the tables whose keys the schema lists; one with free keys, such as an environment, is left alone."""
    schema = _table(schema, root)
    if isinstance(value, list):
        for i, one in enumerate(value):
            yield from _misspelt(one, schema.get("items", {}), root, (*at, i))
    known: Mapping[str, Any] = schema.get("properties", {})
    if not isinstance(value, dict) or not known:
        return
    for key, child in value.items():
        if key in known:
            yield from _misspelt(child, known[key], root, (*at, key))
        elif guess := nearest(key, known.keys() - value.keys()):
            message = f"must be a known key to have an effect; found {found(key)}{guess}"
            yield Fault(pointer((*at, key)), "unknown-key", message)


def _table(schema: Any, root: Any) -> Any:
    """Follow a schema to the one that lists the keys: through a reference, and past the null of an open choice."""
    for option in schema.get("anyOf", []):
        if option.get("type") != "null":
            return _table(option, root)
    ref = schema.get("$ref", "")
    return root["$defs"][ref.removeprefix("#/$defs/")] if ref.startswith("#/$defs/") else schema


def _program(at: tuple[str, ...], program: Any) -> Iterator[Fault]:
    first = program["exec"][0]
    inside = first.removeprefix(_BUNDLE)
    if first != "python" and (inside == first or portable_path_fault(inside)):
        message = f"must be python, or {_BUNDLE} and a portable path; found {found(first)}"
        yield Fault(pointer((*at, "exec", 0)), "exec-program", message)
    runtime = program.get("runtime", {})
    if runtime.get("kind") == "uv":
        for key in ("lock", "python"):
            if runtime.get(key) is None:
                yield Fault(pointer((*at, "runtime")), "runtime-uv", f"must have {key} for kind uv; found none")
    for name in program.get("env", {}):
        if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
            message = f"must not be a variable that the host sets; found {name}"
            yield Fault(pointer((*at, "env", name)), "reserved-env", message)


def _stage_names(stages: list[Any]) -> Iterator[Fault]:
    names: list[str] = []
    for i, stage in enumerate(stages):
        if stage["name"] in names:
            message = f"must be unique among stages; found {found(stage['name'])} again"
            yield Fault(pointer(("stages", i, "name")), "unique-names", message)
        names.append(stage["name"])
    for i, stage in enumerate(stages):
        for other in _after(stage):
            if other not in names or other == stage["name"]:
                message = f"must name another stage of the manifest; found {found(other)}"
                yield Fault(pointer(("stages", i, "after")), "known-stage", message)


def _after(stage: Any) -> list[str]:
    after = stage.get("after")
    return [] if after is None else [after] if isinstance(after, str) else after


def _standalone(stages: list[Any]) -> Iterator[Fault]:
    alone = [stage for stage in stages if not _after(stage)]
    defaults = [i for i, stage in enumerate(stages) if stage.get("default")]
    if stages and not alone:
        yield Fault("/stages", "standalone-stage", "must have a stage that is not after another; found none")
    elif len(alone) > 1 and not defaults:
        yield Fault("/stages", "one-default", f"must have one default among {len(alone)} standalone stages; found none")
    for i in defaults[1:]:
        yield Fault(pointer(("stages", i, "default")), "one-default", "must be true for one stage; found a second")
    for i in defaults[:1]:
        if _after(stages[i]):
            message = "must be a standalone stage; found one that is after another"
            yield Fault(pointer(("stages", i, "default")), "one-default", message)


def _comparing(value: Any, stages: list[Any]) -> Iterator[Fault]:
    overall = value["results"].get("determinism", "exact")
    found_ways = [stage.get("determinism") or overall for stage in stages] or [overall]
    if all(way == "none" for way in found_ways):
        at = "/stages" if stages else "/results/determinism"
        yield Fault(at, "comparing-stage", "must have a stage whose results compare; found determinism none everywhere")


def _core(value: Any, stages: list[Any]) -> Iterator[Fault]:
    core = value["requires"].get("core")
    if core is None or not any("determinism" in stage or "default" in stage for stage in stages):
        return
    if not any(low >= STAGES_CORE for low in _lower_bounds(core)):
        message = f"must start at 2.3 or later for determinism and default of a stage; found {found(core)}"
        yield Fault("/requires/core", "core-range", message)


def _lower_bounds(core: str) -> list[tuple[int, ...]]:
    parts = re.findall(r"(>=|<=|==|>|<) *([0-9.]+)", core)
    # As numbers, never as text: 2.10 is above 2.5.
    return [tuple(map(int, text.split("."))) for sign, text in parts if sign in (">=", ">", "==")]


def _verbs(value: Any, stages: list[Any]) -> Iterator[Fault]:
    verbs = value["coordinator"].get("capabilities", [])
    needs = [
        ("result.merge", len(stages) > 1, "more than one stage"),
        ("op.apply", bool(value.get("operations")), "operations"),
    ]
    for verb, needed, why in needs:
        if needed and verb not in verbs:
            message = f"must hold {verb} for {why}; found {found(verbs)}"
            yield Fault("/coordinator/capabilities", "needed-verb", message)
