"""The certificate of a level: what a sweep found, as a document, and whether it still holds here.

It is void as soon as the machine, the driver, a GPU, the module, the model or the packages that measured are another:
a measurement holds for what was measured. What was told then and can't be told now counts as another. Pure: facts of
this machine and bytes come in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from oarbank_agent_check import windows
from oarbank_agent_check.certify import Certifier, LevelTest
from oarbank_agent_check.windows import Pair, Window
from oarbank_sdk.contracts.judge import judge

KIND = "level-certificate-1"
ANEW = "Run `oarbank-agent-check sweep` again."


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A machine, as far as a level depends on it."""

    platform: str
    os: str
    driver: str | None  # None: part of the system, or not told
    gpus: tuple[str, ...]
    kit: str  # version of the packages that measure


@dataclass(frozen=True, slots=True)
class Model:
    """A model that a payload names; `digest` is None where there is no such file."""

    name: str
    digest: str | None


@dataclass(frozen=True, slots=True)
class WorkFacts:
    """A module's work, as far as a level depends on it."""

    id: str
    version: str
    digest: str  # over the files of its folder
    stage: str | None
    model: Model | None


@dataclass(frozen=True, slots=True)
class How:
    """What was measured, and how."""

    progress: Literal["file", "command"]
    held: str  # a source
    device: Literal["gpu", "cpu"]
    window_s: float
    settle_s: float


def document(
    found: Certifier,
    *,
    host: HostFacts,
    work: WorkFacts,
    how: How,
    made: float,
    took_s: float,
    seed: int,
    program: str | None = None,
) -> dict[str, Any]:
    """Give the document of a search that is over."""
    return {
        "level": found.level,
        "reason": found.why or (None if found.level is not None else "no level passed"),
        "program": program,
        "target": found.rules.target,
        "error": found.rules.error,
        "least_pairs": found.rules.least_pairs,
        "made": made,
        "took_s": took_s,
        "seed": seed,
        "measured": {
            "progress": how.progress,
            "held": how.held,
            "device": how.device,
            "window_s": how.window_s,
            "settle_s": how.settle_s,
        },
        "host": {
            "platform": host.platform,
            "os": host.os,
            "driver": host.driver,
            "gpus": list(host.gpus),
            "kit": host.kit,
        },
        "module": {
            "id": work.id,
            "version": work.version,
            "digest": work.digest,
            "stage": work.stage,
            "model": None if work.model is None else {"name": work.model.name, "digest": work.model.digest},
        },
        "levels": [_tried(test) for test in found.tests if test.pairs],
    }


def pair_document(pair: Pair) -> dict[str, Any]:
    """Give one pair of windows as the certificate lists it."""
    return {"first": _window(pair.first), "second": _window(pair.second), "fault": windows.fault(pair)}


def level_from(data: bytes, where: str, host: HostFacts, work: WorkFacts) -> float | str:
    """Give the level that a certificate grants this work on this machine, or why it grants none, in one line."""
    verdict = judge(KIND, data)
    if not verdict.valid:
        return f"{verdict.faults[0].line(where).rstrip('.')}. Give a certificate that `sweep` wrote."
    certificate = verdict.value
    changed = changes(certificate, host, work)
    if changed:
        return f"{where}: must hold for what is here; it is void: {'; '.join(changed)}. {ANEW}"
    if certificate["level"] is None:
        return f"{where}: must hold a level; found none: {_one_line(certificate['reason'])[:300]}. {ANEW}"
    return float(certificate["level"])


def changes(certificate: Mapping[str, Any], host: HostFacts, work: WorkFacts) -> list[str]:
    """Say what is another than it was when the level was measured; empty: the certificate holds."""
    then, module = certificate["host"], certificate["module"]
    model = None if module["model"] is None else Model(module["model"]["name"], module["model"]["digest"])
    pairs = [
        ("the platform", then["platform"], host.platform),
        ("the operating system", then["os"], host.os),
        ("the GPU's driver", then["driver"], host.driver),
        ("the GPUs", sorted(then["gpus"]), sorted(host.gpus)),
        ("oarbank-agent-check", then["kit"], host.kit),
        ("the module", module["id"], work.id),
        ("the module's version", module["version"], work.version),
        ("the module's files", module["digest"], work.digest),
        ("the stage", module["stage"], work.stage),
        ("the model", model, work.model),
    ]
    return [f"{what} was {_shown(before)} and is {_shown(now)}" for what, before, now in pairs if before != now]


def _shown(value: object) -> str:
    if isinstance(value, Model):
        return f"{_one_line(value.name)[:60]} ({'no file' if value.digest is None else value.digest[:12]})"
    if isinstance(value, list):
        return _one_line(", ".join(value) or "none")[:80]
    if value is None:
        return "none"
    text = _one_line(str(value))
    return text[:12] if len(text) == 64 and text.isalnum() else text[:80]


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _tried(test: LevelTest) -> dict[str, Any]:
    low, high = test.interval()
    return {
        "level": test.level,
        "verdict": test.verdict,
        "reason": test.why,
        "harm": test.harm(),
        "low": low,
        "high": high,
        "error": test.error,
        "noise": test.noise,
        "held": test.held(),
        "pairs": [pair_document(pair) for pair in test.pairs],
    }


def _window(window: Window) -> dict[str, Any]:
    return {
        "kind": window.kind,
        "t": window.t,
        "window_s": window.seconds,
        "progress": window.progress,
        "held": window.held,
    }
