"""What a schema cannot say about a document: rules that look at two places at once, or at the meaning of a text.

Every function takes a value that its schema accepts and yields faults; warnings never refuse a document. The keywords
are part of the contract, as the schemas' own are. Pure, standard library only: no rule may look at a file or a host.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.certificate_rules import certificate_faults
from oarbank_sdk.contracts.faults import Fault, found, nearest, pointer
from oarbank_sdk.contracts.guard_line_rules import guard_line_faults
from oarbank_sdk.contracts.guard_rules import guard_faults
from oarbank_sdk.contracts.journal_rules import journal_faults
from oarbank_sdk.contracts.manifest_rules import manifest_faults, manifest_warnings
from oarbank_sdk.paths import portable_path_fault

MAX_CHECKPOINT_BYTES = 4096
"""Bytes of a checkpoint event's data as compact JSON."""

_EXIT_OF_OK = {True: 0, False: 1, None: 3}


def rule_faults(kind: str, value: Any) -> list[Fault]:
    """Return what the rules beside the schema of `kind` refuse in a value that the schema accepts."""
    rules = _RULES.get(kind)
    return [] if rules is None else list(rules(value))


def warnings(kind: str, value: Any) -> list[Fault]:
    """Return advice about a value that the schema of `kind` accepts; it refuses nothing."""
    rules = _WARNINGS.get(kind)
    return [] if rules is None else list(rules(value))


def _control(value: Any) -> Iterator[Fault]:
    if value.get("checkpoint") and not value.get("stop"):
        yield Fault("/checkpoint", "checkpoint-needs-stop", "must come with stop; found no stop in force")


def _event(value: Any) -> Iterator[Fault]:
    if value["kind"] == "checkpoint":
        size = len(json.dumps(value.get("data", {}), ensure_ascii=False, separators=(",", ":")).encode("utf-8"))
        if size > MAX_CHECKPOINT_BYTES:
            message = f"must be at most {MAX_CHECKPOINT_BYTES} bytes as compact JSON; found {size}"
            yield Fault("/data", "checkpoint-bytes", message)
    yield from _paths([(("files", i, "path"), file["path"]) for i, file in enumerate(value.get("files", []))])


def _conformance(value: Any) -> Iterator[Fault]:
    for key in ("runner_specs", "service_specs", "duty_specs"):
        entries = value.get(key, [])
        yield from _unique_names((key,), entries)
        for i, entry in enumerate(entries):
            yield from _mounts((key, i, "mounts"), entry.get("mounts", {}))


def _conformance_warnings(value: Any) -> Iterator[Fault]:
    known = catalogue.schema("conformance-1")["properties"]
    for key in value:
        if key not in known:
            message = f"must be a known key to have an effect; found {found(key)}{nearest(key, known)}"
            yield Fault(pointer((key,)), "unknown-key", message)


def _report(value: Any) -> Iterator[Fault]:
    statuses = [check["status"] for check in value["checks"]]
    for status, count in value["counts"].items():
        if status in ("pass", "fail", "unknown", "skip", "warn") and count != statuses.count(status):
            message = f"must be the number of checks with that status, {statuses.count(status)}; found {count}"
            yield Fault(pointer(("counts", status)), "counts-tally", message)
    if value["ok"] is not False and "fail" in statuses:
        yield Fault("/ok", "ok-follows-checks", f"must be false where a check failed; found {found(value['ok'])}")
    wanted = _EXIT_OF_OK[value["ok"]]
    if value["exit"] != wanted:
        message = f"must be {wanted} where ok is {found(value['ok'])}; found {value['exit']}"
        yield Fault("/exit", "exit-follows-ok", message)


def _spec(value: Any) -> Iterator[Fault]:
    yield from _mounts(("mounts",), value.get("mounts", {}))


def _result(value: Any) -> Iterator[Fault]:
    artifacts = value.get("artifacts", [])
    yield from _unique_names(("artifacts",), artifacts)
    for i, artifact in enumerate(artifacts):
        at = ("artifacts", i, "files")
        files = list(enumerate(artifact["files"]))
        yield from _paths([((*at, j, "path"), file["path"]) for j, file in files])
        for j, file in files:
            yield from _source((*at, j), file)


def _source(at: tuple[str | int, ...], file: Any) -> Iterator[Fault]:
    local = file.get("local")
    if local is not None:
        yield from _paths([((*at, "local"), local)])
    elif file.get("digest") is None or file.get("size") is None:
        yield Fault(pointer(at), "artifact-source", "must have local, or digest and size; found neither")


def _sample(value: Any) -> Iterator[Fault]:
    share, low, high = value["share"], value.get("low"), value.get("high")
    if (share is None or value["busy_s"] is None) and not value["unknown"]:
        yield Fault("/unknown", "unknown-reason", "must say why a quantity could not be told; found an empty list")
    known = [(name, number) for name, number in (("low", low), ("share", share), ("high", high)) if number is not None]
    for (lower, a), (upper, b) in pairwise(known):
        if a > b:
            yield Fault(f"/{lower}", "range-order", f"must be at most {upper}, {b}; found {a}")


def _mounts(at: tuple[str | int, ...], mounts: dict[str, str]) -> Iterator[Fault]:
    yield from _paths([((*at, dataset), path) for dataset, path in mounts.items()])


def _paths(paths: list[tuple[tuple[str | int, ...], str]]) -> Iterator[Fault]:
    """Judge paths that share a directory: each alone, and then whether two are one file where case is folded."""
    for at, path in paths:
        if fault := portable_path_fault(path):
            yield Fault(pointer(at), "portable-path", f"{fault}; found {found(path)}")
    seen: set[str] = set()
    for at, path in paths:
        if path.casefold() in seen:
            message = f"must differ from the others, also where case is folded; found {found(path)}"
            yield Fault(pointer(at), "unique-paths", message)
        seen.add(path.casefold())


def _unique_names(at: tuple[str | int, ...], entries: Iterable[Any]) -> Iterator[Fault]:
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        if entry["name"] in seen:
            message = f"must be unique among {at[-1]}; found {found(entry['name'])} again"
            yield Fault(pointer((*at, i, "name")), "unique-names", message)
        seen.add(entry["name"])


_RULES: dict[str, Callable[[Any], Iterator[Fault]]] = {
    "runner-control-1": _control,
    "runner-event-1": _event,
    "conformance-1": _conformance,
    "conformance-report-1": _report,
    "spec-envelope-1": _spec,
    "result-envelope-1": _result,
    "module-manifest-1": manifest_faults,
    "gpu-sample-1": _sample,
    "agent-journal-1": journal_faults,
    "guard-config-1": guard_faults,
    "guard-line-1": guard_line_faults,
    "level-certificate-1": certificate_faults,
}
_WARNINGS: dict[str, Callable[[Any], Iterator[Fault]]] = {
    "conformance-1": _conformance_warnings,
    "module-manifest-1": manifest_warnings,
}
