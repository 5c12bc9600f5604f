"""Turn an operation of a module, such as `queue_prompts`, into jobs: the module's own coordinator is asked.

The jobs are in the effects of its answer. What the coordinator refuses is the owner's to mend; what it breaks is the
module's, and said so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.coordinator import Answer, Coordinator, coordinator
from oarbank_agent_check.jobs.coordinator_process import conversation, hello
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.manifest import Manifest
from oarbank_agent_check.jobs.runner_process import StartRefused

Wrong = Callable[[str, str], Exception]
"""Makes the error for a place below the entry (`/op`, `/params/model`) and what must hold there."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job that the coordinator enqueues."""

    stage: str | None
    payload: Mapping[str, Any]


def expand(
    manifest: Manifest, folder: Path, host: Host, verb: str, params: Mapping[str, Any], wrong: Wrong
) -> list[QueuedJob]:
    """Return the jobs of an operation, in order. Raises what `wrong` makes, and `HostFault`."""
    told = coordinator(manifest.document)
    if told is None:
        raise wrong("/op", "must be an operation of the module; found a module without a coordinator")
    if verb not in told.operations:
        known = ", ".join(told.operations) or "none"
        raise wrong("/op", f"must be an operation of the module; found {verb[:80]!r}. There is {known}.")
    answer = _asked(told, manifest, folder, host, verb, params, wrong)
    if answer.code is not None:
        raise wrong("/params", f"must hold for {verb}; the module says: {answer.message}")
    return queued(answer.result, wrong)


def queued(result: Any, wrong: Wrong) -> list[QueuedJob]:
    """Return the jobs in the result of `op.apply`. Raises what `wrong` makes."""
    if not isinstance(result, dict):
        raise wrong("/op", "must be answered with an object by the module; found another value")
    errors = [one for one in result.get("errors") or [] if isinstance(one, dict)]
    if errors:
        raise wrong(f"/params{errors[0].get('path', '')}", f"{errors[0].get('message', 'must hold')}")
    jobs = []
    for effect in result.get("effects") or []:
        if isinstance(effect, dict) and effect.get("kind") == "jobs.enqueue":
            jobs += [_job(one, wrong) for one in (effect.get("args") or {}).get("jobs") or []]
    if not jobs:
        raise wrong("/op", "must make a job; the module enqueues none")
    return jobs


def _job(one: Any, wrong: Wrong) -> QueuedJob:
    if not isinstance(one, dict) or not isinstance(one.get("spec"), dict):
        raise wrong("/op", "must make jobs with a spec; the module enqueues one without")
    stage = one.get("stage")
    return QueuedJob(stage if isinstance(stage, str) else None, one["spec"])


def _asked(
    told: Coordinator,
    manifest: Manifest,
    folder: Path,
    host: Host,
    verb: str,
    params: Mapping[str, Any],
    wrong: Wrong,
) -> Answer:
    assert manifest.module is not None
    try:
        with conversation(told, manifest.module, folder, host) as talk:
            started = talk.ask("initialize", hello(host), told.timeout_s("initialize"))
            if started.missing is not None or started.code is not None:
                words = talk.process.stderr_tail().strip().splitlines()
                last = f"; its last words: {words[-1][:200]}" if words else ""
                raise wrong("/module", f"its coordinator must start; {started.missing or started.message}{last}")
            talk.tell("initialized")
            asked = {"verb": verb, "params": dict(params), "actor": "owner"}
            answer = talk.ask("op.apply", asked, told.timeout_s("op.apply"))
            if answer.missing is not None:
                raise wrong("/op", f"its coordinator must answer; {answer.missing}")
            return answer
    except StartRefused as exc:
        raise wrong("/module", f"its coordinator must start; {exc}") from None
