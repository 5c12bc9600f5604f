"""What the schema of a guard's line cannot say: which fields a line of each kind must have.

Takes a value that the schema accepts and yields faults. Pure, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_sdk.contracts.faults import Fault, found, pointer

_NEEDS: dict[str, tuple[str, ...]] = {"state": ("gpu_jobs", "programs", "jobs"), "said": ("text",), "end": ("exit",)}


def guard_line_faults(value: Any) -> Iterator[Fault]:
    """Yield the fields that a line lacks, and names that stand for two entries."""
    kind = value["kind"]
    for name in _NEEDS[kind]:
        if name not in value:
            yield Fault("", "kind-fields", f"must have {name} in a line of kind {kind}; found none")
        elif value[name] is None:
            yield Fault(pointer((name,)), "kind-fields", f"must say it in a line of kind {kind}; found null")
    for at in ("programs", "jobs"):
        seen: set[str] = set()
        for i, entry in enumerate(value.get(at) or ()):
            if entry["name"] in seen:
                message = f"must be unique among {at}; found {found(entry['name'])} again"
                yield Fault(pointer((at, i, "name")), "unique-names", message)
            seen.add(entry["name"])
