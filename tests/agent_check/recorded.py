"""Recordings for tests: those that were handed over, and what their processes gained."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources.recording_parse import gains_of, readings_of

RECORDINGS = Path(__file__).with_name("recordings")


def recorded(*names: str) -> list[bytes]:
    return [(RECORDINGS / name).read_bytes() for name in names]


def gained(documents: Sequence[bytes], *pids: int) -> dict[int, int | None]:
    """Give what each process gained from the first to the last reading, None for unknown."""
    gains = gains_of(readings_of(documents, pids), pids)
    return {pid: None if isinstance(gain.busy, Unknown) else gain.busy for pid, gain in gains.items()}


def packed(document: Any) -> list[bytes]:
    return [json.dumps(document).encode()]
