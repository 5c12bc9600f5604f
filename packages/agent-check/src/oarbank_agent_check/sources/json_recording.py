"""Recordings that are JSON: the shape they share, and numbers that may be anything.

A recording is an object with a list of readings (or calls), each an object with its moment `t_s` in seconds. Decides
what is a document at all; what is inside belongs to the source that wrote it. Pure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from oarbank_agent_check.gpu_readings import NotARecording

PACE_S = 2.0
"""How far apart readings are taken to be where they carry no time: the agent looks every two seconds."""


def parse_object(document: bytes) -> dict[str, Any]:
    """Read one JSON object; raises NotARecording for any other bytes."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as fault:  # decoding, syntax, far too many digits, far too deep
        raise NotARecording(f"recording: must be JSON; {str(fault)[:120]}.") from None
    if not isinstance(value, dict):
        raise NotARecording(f"recording: must be a JSON object; found {type(value).__name__}.")
    return value


def looks_like(document: bytes, names: Sequence[str], keys: frozenset[str]) -> bool:
    """Say whether it is an object that holds a list under one of `names`, or itself, with any of `keys` in it."""
    try:
        value = parse_object(document)
    except NotARecording:
        return False
    rows = [row for name in names if isinstance(value.get(name), list) for row in value[name]]
    return any(isinstance(row, dict) and not keys.isdisjoint(row) for row in [value, *rows])


def moments(value: Mapping[str, Any], name: str = "readings") -> list[tuple[float, dict[str, Any]]]:
    """Give the readings in order of time, each with its moment; raises NotARecording where there are none.

    Where any reading lacks a time, the order of the list holds and they count as `PACE_S` apart.
    """
    rows = value.get(name)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise NotARecording(f"recording: {name!r} must be a list of at least one object; found {str(rows)[:60]}.")
    times = [moment(row) for row in rows]
    if None in times:
        return [(index * PACE_S, row) for index, row in enumerate(rows)]
    return sorted(zip([t for t in times if t is not None], rows, strict=True), key=lambda pair: pair[0])


def moment(row: Mapping[str, Any]) -> float | None:
    """Give the seconds of a reading, None where there is no usable number."""
    t = row.get("t_s")
    if isinstance(t, bool) or not isinstance(t, int | float) or not abs(t) < 1e15 or not math.isfinite(t):
        return None
    return float(t)


def whole(value: Any, most: int = (1 << 64) - 1) -> int | None:
    """Give a whole number from 0 to `most`, None for anything else (true is no number here)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most else None
