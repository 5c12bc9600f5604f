"""What a finished batch says of itself: rates and the result envelope. Pure.

Time in which the duty or a pause held the batch back says nothing about its speed, so both are left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oarbank_llmserve.batch import Totals
from oarbank_llmserve.job import SHORT_NAME, Job
from oarbank_llmserve.sink import Completion

RESULT_SCHEMA = f"{SHORT_NAME}/result@1"
COMPLETIONS_NAME = "completions"
COMPLETIONS = f"{COMPLETIONS_NAME}.jsonl"


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of a batch went, from its first unit to its last."""

    wall_s: float
    idle_s: float = 0.0  # held back by the duty
    paused_s: float = 0.0

    @property
    def own_s(self) -> float:
        """The batch's own time."""
        return max(self.wall_s - self.idle_s - self.paused_s, 0.0)

    def rate(self, tokens: int) -> float | None:
        """Tokens a second of its own time; None when there was none to speak of."""
        return tokens / self.own_s if self.own_s > 1e-6 else None

    def held(self, busy_s: float) -> float | None:
        """The share of the time (pauses left out) inside units."""
        running_s = self.wall_s - self.paused_s
        return min(busy_s / running_s, 1.0) if running_s > 1e-6 else None


@dataclass(slots=True)
class Counts:
    """What the job came to, whoever ran which part of it."""

    prompts: int = 0
    failed: int = 0
    tokens: int = 0
    prompt_tokens: int = 0

    def count(self, completion: Completion) -> None:
        """One prompt more."""
        self.prompts += 1
        self.failed += completion.error is not None
        self.tokens += completion.tokens
        self.prompt_tokens += completion.prompt_tokens


def payload(
    counts: Counts, own: Totals, spent: Spent, digest: str, texts: list[str] | None, resumed: int = 0
) -> dict[str, Any]:
    """The result's payload: counts of the whole job, speeds of this attempt.

    `own` is what this attempt ran; `resumed` prompts were found in the ledger. `texts` only where they are compared
    (the self-test).
    """
    rate, held = (spent.rate(own.tokens), spent.held(own.busy_s)) if own.units else (None, None)
    fields: dict[str, Any] = {
        "prompts": counts.prompts,
        "failed": counts.failed,
        "tokens": counts.tokens,
        "prompt_tokens": counts.prompt_tokens,
        "resumed": resumed,
        "seconds": round(spent.own_s, 3),
        "tokens_per_s": None if rate is None else round(rate, 3),
        "held": None if held is None else round(held, 4),
        "idle_s": round(spent.idle_s, 3),
        "paused_s": round(spent.paused_s, 3),
        "units": own.units,
        "longest_unit_s": round(own.longest_unit_s, 6),
        "digest": digest,
    }
    if texts is not None:
        fields["texts"] = texts
    return fields


def envelope(
    job: Job, fields: dict[str, Any], effective: dict[str, Any], tools: dict[str, str], model_sha256: str | None = None
) -> dict[str, Any]:
    """The result envelope around a payload; the completions lie beside it in the workdir."""
    provenance: dict[str, Any] = {"tool_versions": {SHORT_NAME: job.module_version, **tools}}
    if model_sha256 is not None:
        provenance["model"] = {"name": job.model, "sha256": model_sha256}
    return {
        "envelope": 1,
        "schema": RESULT_SCHEMA,
        "module_version": job.module_version,
        "protocol": 1,
        "effective": effective,
        "payload": fields,
        "provenance": provenance,
        "artifacts": [{"name": COMPLETIONS_NAME, "files": [{"path": COMPLETIONS, "local": COMPLETIONS}]}],
    }
