"""Which secrets a stage's runner is given: the fixtures' texts, else canaries that nobody writes by chance. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oarbank_conformkit.fixtures import Fixtures


def by_stage(
    manifest: Mapping[str, Any], fixtures: Fixtures | None, canary: Callable[[], str]
) -> dict[str | None, dict[str, str]]:
    """Return the secrets of each stage that lists some under `secrets`, by its name."""
    told = {} if fixtures is None else fixtures.secrets
    granted: dict[str | None, dict[str, str]] = {}
    for stage in manifest.get("stages", []):
        listed = stage.get("secrets")
        names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
        if names:
            granted[stage["name"]] = {name: told.get(name) or canary() for name in names}
    return granted
