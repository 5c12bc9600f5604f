"""What bounds a job besides itself: the agent's grant and the owner's settings. Pure.

Of every bound the smallest holds: an owner's word is never loosened by a job, nor a job's by an owner. The settings are
the module's own, one object: `longest_ms` (units no longer than that) and `memory_gb` (what a backend may allocate).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from oarbank_llmserve.job import Job, Refusal
from oarbank_llmserve.payload import Bad, number


def bounded(job: Job, resources: Any, settings: Any) -> Job | Refusal:
    """The job with the smallest of its own bounds, the grant's and the owner's."""
    granted = resources if isinstance(resources, dict) else {}
    try:
        if not isinstance(settings, dict):
            raise Bad("settings", "must be an object", settings)
        longest_ms = number(settings, "longest_ms", 1, 60_000, "settings: ")
        memory_gb = number(settings, "memory_gb", 0.01, 1024, "settings: ")
    except Bad as bad:
        return Refusal("bad_settings", 3, str(bad), "host")
    return replace(
        job,
        longest_s=_smallest(job.longest_s, None if longest_ms is None else longest_ms / 1000),
        memory_gb=_smallest(job.memory_gb, memory_gb, _positive(granted, "mem_gb")),
    )


def granted_threads(resources: Any) -> int | None:
    """The CPUs that the agent granted; None when it says nothing usable."""
    cpu = _positive(resources if isinstance(resources, dict) else {}, "cpu")
    return None if cpu is None else max(int(min(cpu, 1024)), 1)


def _positive(grant: Mapping[str, Any], key: str) -> float | None:
    value = grant.get(key)
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return float(value) if usable else None


def _smallest(*bounds: float | None) -> float | None:
    return min((bound for bound in bounds if bound is not None), default=None)
