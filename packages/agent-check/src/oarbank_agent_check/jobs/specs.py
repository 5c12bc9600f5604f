"""The task that a runner is given: its spec envelope.

Pure. A golden's key inputs are its own; a task that only a fixture knows has no planner behind it, so its payload is
its key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oarbank_agent_check.jobs.module import Module, Stage
from oarbank_sdk import canonical


@dataclass(frozen=True, slots=True)
class Task:
    """What a golden or a fixture asks a runner to do."""

    name: str
    stage: Stage
    payload: Mapping[str, Any]
    key_inputs: Mapping[str, Any]
    datasets: Sequence[str] = ()
    mounts: Mapping[str, str] = field(default_factory=dict)


def envelope(module: Module, task: Task, platform: str) -> dict[str, Any]:
    """Return the document for spec.json. Raises CanonicalError for key inputs without a canonical form."""
    stage = None if task.stage.default else task.stage.name
    document = {
        "envelope": 1,
        "schema": f"{module.short}/spec@1",
        "module_id": module.id,
        "module_version": module.version,
        "job_key": canonical.job_key(module.id, module.compat, task.key_inputs, stage),
        "protocol": 1,
        "payload": task.payload,
        "datasets": list(task.datasets),
        "mounts": dict(task.mounts),
        "inputs": {},
        "resources": dict(task.stage.resources),
        "timeout_s": task.stage.timeout_s,
        "platform": platform,
    }
    return document if stage is None else {**document, "stage": stage}
