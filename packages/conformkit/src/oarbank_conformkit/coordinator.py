"""What has to be known of a module's coordinator, taken from its manifest. Pure.

`None` where the manifest has none: a module may be a runner alone.
"""

from __future__ import annotations

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
