"""What the schema of an agent's journal cannot say: which fields a line of each kind must have, and its time.

Takes a value that the schema accepts and yields faults. Pure, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_sdk.contracts.faults import Fault, found, pointer

_NEEDS: dict[str, tuple[str, ...]] = {
    "job": ("job", "module", "cooperative", "gpu_use", "pausable"),
    "job_end": ("job",),
    "protected": ("active",),
    "pressure": ("value",),
    "sample": ("job", "share"),
    "policy": ("gpu_jobs",),
    "tick": (),
    "duty": ("job", "duty", "because"),
    "pause": ("job", "until", "reason", "because"),
    "resume": ("job", "because"),
    "stop": ("job", "reason", "because"),
    "release": ("job", "reason", "because"),
    "ban": ("module", "until", "because"),
    "unban": ("module", "because"),
    "admit": ("job", "because"),
    "hold": ("job", "reason", "because"),
}
_MAY_BE_NULL = {("pressure", "value"), ("sample", "share"), ("duty", "duty"), ("pause", "until")}
"""Null says something there: unreadable, no limit, nobody knows."""


FARTHEST_S = 1e12
"""A journal's clock reads at most so much, either way: far beyond it a double no longer tells minutes apart."""


def journal_faults(value: Any) -> Iterator[Fault]:
    """Yield the fields that a line lacks, and a time that no clock of a journal shows."""
    if abs(value["t"]) > FARTHEST_S:
        yield Fault("/t", "time-range", f"must be seconds, within 1e12 of 0; found {found(value['t'])}")
    kind = value["kind"]
    for name in _NEEDS[kind]:
        if name not in value:
            yield Fault("", "kind-fields", f"must have {name} in a line of kind {kind}; found none")
        elif value[name] is None and (kind, name) not in _MAY_BE_NULL:
            yield Fault(pointer((name,)), "kind-fields", f"must say it in a line of kind {kind}; found null")
