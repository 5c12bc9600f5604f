"""What has to be known of a module's coordinator, taken from its manifest; and what came of a question to it. Pure.

`None` where the manifest has no coordinator: a module may be a runner alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT_TIMEOUT_S = 10.0
"""How long a verb may take that `coordinator.timeouts` does not name (module protocol)."""


@dataclass(frozen=True, slots=True)
class Coordinator:
    """A manifest's facts about its coordinator."""

    exec: tuple[str, ...]
    env: Mapping[str, str]
    capabilities: frozenset[str]
    timeouts: Mapping[str, float]
    operations: Mapping[str, tuple[str, ...]]  # verb: the effects that it may have

    def timeout_s(self, verb: str) -> float:
        """Give how long a verb may take."""
        return self.timeouts.get(verb, DEFAULT_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: a result, an error, or neither and why."""

    result: Any = None
    code: int | None = None  # of an error
    message: str = ""
    data: Any = None
    missing: str | None = None  # there was no answer: why
    took_s: float = 0.0

    def same(self, other: Answer) -> bool:
        """Say whether two answers say the same."""
        mine, theirs = (self.result, self.code, self.message), (other.result, other.code, other.message)
        return json.dumps(mine, sort_keys=True) == json.dumps(theirs, sort_keys=True)

    def shown(self) -> str:
        """Say in a clause what it was."""
        if self.missing is not None:
            return self.missing
        text = f"error {self.code}: {self.message}" if self.code is not None else json.dumps(self.result)
        return text if len(text) <= 120 else f"{text[:117]}..."


def coordinator(manifest: Mapping[str, Any]) -> Coordinator | None:
    """Return the facts of a valid manifest, None for one without a coordinator."""
    told = manifest.get("coordinator")
    if told is None:
        return None
    return Coordinator(
        exec=tuple(told["exec"]),
        env=told.get("env", {}),
        capabilities=frozenset(told.get("capabilities", [])),
        timeouts={verb: float(seconds) for verb, seconds in told.get("timeouts", {}).items()},
        operations={one["verb"]: tuple(one.get("effects", [])) for one in manifest.get("operations", [])},
    )
