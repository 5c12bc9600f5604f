"""conformance.json: what a module's author asks the kit to run, and which parts of it cannot be used.

Pure. A broken entry is one failure and stops nothing else, so the file is judged entry by entry: what the contract
refuses is taken out, and the rest goes on. What only the manifest can tell (an unknown stage, a runner that could
never get a duty) is decided in `plan`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.judge import judge, judge_value
from oarbank_sdk.contracts.rules import warnings

KIND = "conformance-1"

KINDS = {
    "runner_specs": "runner spec",
    "service_specs": "service spec",
    "duty_specs": "duty spec",
    "ops": "op",
    "params": "params",
    "node_classes": "node class",
}
"""Lists of entries, and what one entry is called in a report."""

DEFAULT_WINDOW_S = 4.0
"""`window_s` of a duty spec that names none (contract conformance-1)."""

NOT_RUN = ("service_specs", "images", "store", "files")
"""Keys that this version of the kit reads and does not use: no service, image set or store is pretended here."""


@dataclass(frozen=True, slots=True)
class DutySpec:
    """A task whose duty is measured; `index` is its place in the file."""

    index: int
    name: str
    stage: str | None  # None: the default stage
    duty: float  # 0..1
    window_s: float
    payload: Mapping[str, Any]
    datasets: tuple[str, ...]
    mounts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """A task that is run once, and how it must end; `index` is its place in the file."""

    index: int
    name: str
    stage: str | None  # None: the default stage
    payload: Mapping[str, Any]
    datasets: tuple[str, ...]
    mounts: Mapping[str, str]
    exit: int = 0
    artifacts: tuple[str, ...] | None = None  # None: not checked
    reason: str | None = None  # None: not checked


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is applied twice; `index` is its place in the file."""

    index: int
    verb: str
    target: Any
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class EntryFault:
    """One entry that cannot be used: `duty spec #0`, or a top-level key, with every fault found in it."""

    entry: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Fixtures:
    """What can be used of a fixtures file, and what is wrong with the rest."""

    shown: str  # how the file is called in messages
    folder: str = "."  # where it stands; what it names lies beside it
    duty_specs: tuple[DutySpec, ...] = ()
    runner_specs: tuple[RunnerSpec, ...] = ()
    ops: tuple[Operation, ...] = ()
    params: tuple[Mapping[str, Any], ...] = ()
    node_classes: tuple[Mapping[str, Any], ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict)
    datasets: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)
    file_fault: str | None = None  # the whole file cannot be used
    entry_faults: tuple[EntryFault, ...] = ()
    unknown_keys: tuple[Fault, ...] = ()
    not_run: tuple[str, ...] = ()
    has_duty_specs: bool = False  # even when none of them can be used


def fixtures(shown: str, data: bytes, folder: str = ".") -> Fixtures:
    """Return what a fixtures file that stands in `folder` asks for."""
    verdict = judge(KIND, data)
    if verdict.layer in ("bytes", "json") and not verdict.valid:
        return Fixtures(shown, folder, file_fault="; ".join(fault.line("") for fault in verdict.faults))
    if not isinstance(verdict.value, dict):
        return Fixtures(shown, folder, file_fault=verdict.faults[0].message)
    value, entry_faults = _usable(verdict.value, verdict.faults)
    return Fixtures(
        shown,
        folder,
        duty_specs=_duty_specs(value),
        runner_specs=_runner_specs(value),
        ops=tuple(
            Operation(index, entry["verb"], entry.get("target"), entry.get("params", {}))
            for index, entry in _entries(value, "ops")
        ),
        params=tuple(entry for _, entry in _entries(value, "params")),
        node_classes=tuple(entry for _, entry in _entries(value, "node_classes")),
        secrets=value.get("secrets", {}),
        datasets=value.get("datasets", {}),
        settings=value.get("settings", {}),
        tools=value.get("tools", {}),
        folders=value.get("folders", {}),
        entry_faults=entry_faults,
        unknown_keys=tuple(_unknown_keys(verdict.value)),
        not_run=tuple(key for key in NOT_RUN if verdict.value.get(key)),
        has_duty_specs="duty_specs" in verdict.value,
    )


def _unknown_keys(value: dict[str, Any]) -> list[Fault]:
    # The whole chain gives warnings for valid files alone; a typing error counts in a broken one too.
    return [fault for fault in warnings(KIND, value) if fault.keyword == "unknown-key"]


def _usable(value: dict[str, Any], faults: list[Fault]) -> tuple[dict[str, Any], tuple[EntryFault, ...]]:
    """Take out what the contract refuses until it refuses nothing; rules speak only of what the schema accepts."""
    left = copy.deepcopy(value)
    gathered: dict[str, list[Fault]] = {}
    while faults:
        for fault in faults:
            key, entry = _place(fault)
            gathered.setdefault(entry, []).append(fault)
            index = _index(fault)
            if index is not None and isinstance(left.get(key), list):
                left[key][index] = None
            else:
                left.pop(key, None)
        faults = _faults_without_holes(left)
    return left, tuple(EntryFault(entry, tuple(found)) for entry, found in gathered.items())


def _faults_without_holes(value: dict[str, Any]) -> list[Fault]:
    """Judge a value in which a taken-out entry left None, and give faults with the places of the whole file."""
    places = {key: [i for i, one in enumerate(value[key]) if one is not None] for key in KINDS if key in value}
    judged = {key: [value[key][i] for i in places[key]] if key in places else value[key] for key in value}
    moved = []
    for fault in judge_value(KIND, judged):
        steps = fault.pointer.split("/")
        if len(steps) > 2 and steps[1] in places:
            steps[2] = str(places[steps[1]][int(steps[2])])
        moved.append(Fault("/".join(steps), fault.keyword, fault.message))
    return moved


def _place(fault: Fault) -> tuple[str, str]:
    key = fault.pointer.split("/")[1].replace("~1", "/").replace("~0", "~")
    index = _index(fault)
    return key, key if index is None else f"{KINDS[key]} #{index}"


def _index(fault: Fault) -> int | None:
    steps = fault.pointer.split("/")
    return int(steps[2]) if len(steps) > 2 and steps[1] in KINDS and steps[2].isdigit() else None


def _duty_specs(usable: dict[str, Any]) -> tuple[DutySpec, ...]:
    return tuple(
        DutySpec(
            index=index,
            name=entry["name"],
            stage=entry.get("stage"),
            duty=float(entry["duty"]),
            window_s=float(entry.get("window_s", DEFAULT_WINDOW_S)),
            payload=entry["payload"],
            datasets=tuple(entry.get("datasets", [])),
            mounts=entry.get("mounts", {}),
        )
        for index, entry in _entries(usable, "duty_specs")
    )


def _runner_specs(usable: dict[str, Any]) -> tuple[RunnerSpec, ...]:
    return tuple(
        RunnerSpec(
            index=index,
            name=entry["name"],
            stage=entry.get("stage"),
            payload=entry["payload"],
            datasets=tuple(entry.get("datasets", [])),
            mounts=entry.get("mounts", {}),
            exit=(expect := entry.get("expect", {})).get("exit", 0),
            artifacts=None if expect.get("artifacts") is None else tuple(expect["artifacts"]),
            reason=expect.get("reason"),
        )
        for index, entry in _entries(usable, "runner_specs")
    )


def _entries(usable: dict[str, Any], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries that can be used, each with its place in the file."""
    return ((index, entry) for index, entry in enumerate(usable.get(key, [])) if entry is not None)
