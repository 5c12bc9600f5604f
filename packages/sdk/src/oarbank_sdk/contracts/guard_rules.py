"""What the schema of a guard's configuration cannot say: which keys go together, and names that are given once.

Takes a value that the schema accepts and yields faults. Pure, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_sdk.contracts.faults import Fault, found, pointer


def guard_faults(value: Any) -> Iterator[Fault]:
    """Yield what cannot work together, or would protect or run nothing."""
    jobs, workloads, programs = value.get("job", []), value.get("workload", []), value.get("protect", [])
    if not jobs and not workloads:
        yield Fault("", "something-to-run", "must have a [[job]] or a [[workload]]; found none")
    seen: set[str] = set()
    for kind, entries in (("job", jobs), ("workload", workloads)):
        yield from _unique(kind, entries, seen)
    yield from _unique("protect", programs, set())
    for i, program in enumerate(programs):
        yield from _program(("protect", i), program)
    for i, job in enumerate(jobs):
        yield from _job(("job", i), job)


def _unique(kind: str, entries: list[Any], seen: set[str]) -> Iterator[Fault]:
    for i, entry in enumerate(entries):
        if entry["name"] in seen:
            message = f"must be given once; found {found(entry['name'])} again"
            yield Fault(pointer((kind, i, "name")), "unique-names", message)
        seen.add(entry["name"])


def _program(at: tuple[str | int, ...], program: Any) -> Iterator[Fault]:
    if all(program.get(key) is None for key in ("pid", "process", "arguments")):
        yield Fault(pointer(at), "program-match", "must have pid, process or arguments; found none")
    progress, levels = program.get("progress"), program.get("levels", {})
    if progress is not None and (progress.get("file") is None) == (progress.get("command") is None):
        message = f"must have either file or command; found {found(progress)}"
        yield Fault(pointer((*at, "progress")), "progress-source", message)
    if progress is None and (program.get("level") is not None or levels):
        message = "must have progress beside a level, or nobody would see that it slows; found none"
        yield Fault(pointer(at), "level-needs-progress", message)
    yield from _file((*at, "level"), program.get("level"))
    for module, level in levels.items():
        yield from _file((*at, "levels", module), level)


def _job(at: tuple[str | int, ...], job: Any) -> Iterator[Fault]:
    payload, op = job.get("payload"), job.get("op")
    if (payload is None) == (op is None):
        yield Fault(pointer(at), "payload-or-op", f"must have either payload or op; found {'both' if op else 'none'}")
    elif op is None and job.get("params") is not None:
        yield Fault(pointer((*at, "params")), "params-need-op", "must come with op; found payload")
    elif op is not None and job.get("stage") is not None:
        message = "must come with payload, since an operation names stages itself; found op"
        yield Fault(pointer((*at, "stage")), "stage-needs-payload", message)
    yield from _file((*at, "payload"), payload)
    yield from _file((*at, "params"), job.get("params"))


def _file(at: tuple[str | int, ...], value: Any) -> Iterator[Fault]:
    if isinstance(value, str) and not value.startswith("@"):
        yield Fault(pointer(at), "at-file", f"must begin with @ where it is the path of a file; found {found(value)}")
