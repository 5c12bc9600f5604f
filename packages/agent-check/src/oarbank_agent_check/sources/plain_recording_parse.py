"""Recordings of what any reader handed over: its counters and windows as they are, for readers that keep nothing rawer.

It writes and reads one JSON form and decides nothing. Only processes that were asked for are in it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from oarbank_agent_check.gpu_readings import Added, Counter, GpuReading, NotARecording
from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources.json_recording import looks_like, moments, parse_object, whole


def written(source: str, readings: Sequence[GpuReading]) -> bytes:
    """Give the document of one source's readings."""
    rows = [_row(reading, readings[0].t) for reading in readings]
    return json.dumps({"source": source, "readings": rows}, indent=1).encode() + b"\n"


def _row(reading: GpuReading, since_s: float) -> dict[str, Any]:
    return {
        "t_s": round(reading.t - since_s, 6),
        "counters": [
            {"pid": c.pid, "client": c.client, "engine": c.engine, "value": c.value, "capacity": c.capacity}
            | ({} if c.total is None else {"total": c.total, "device": c.device})
            for c in reading.counters
        ],
        "added": [
            {"pid": a.pid, "busy_ns": a.busy_ns, "low_ns": a.low_ns, "high_ns": a.high_ns} for a in reading.added
        ],
        "unknown": {str(pid): why.reason for pid, why in reading.unknown.items()},
        "outside": sorted(reading.outside),
        "gone": sorted(reading.gone),
        "asleep": sorted(reading.asleep),
        "elsewhere": {str(pid): sorted(names) for pid, names in reading.elsewhere.items()},
        "dips": reading.dips,
    }


def recognises(document: bytes) -> bool:
    """Say whether this is such a document."""
    return looks_like(document, ["readings"], frozenset({"counters", "added"}))


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read documents; raises NotARecording and nothing else."""
    rows = [row for document in documents for row in moments(parse_object(document))]
    return [_reading(t, row, set(pids)) for t, row in rows]


def _reading(t: float, row: Mapping[str, Any], pids: set[int]) -> GpuReading:
    try:
        return GpuReading(
            t,
            tuple(_counter(one) for one in row.get("counters", ()) if one["pid"] in pids),
            tuple(_added(one) for one in row.get("added", ()) if one["pid"] in pids),
            {int(pid): Unknown(str(why)) for pid, why in row.get("unknown", {}).items() if int(pid) in pids},
            frozenset(map(str, row.get("outside", ()))),
            frozenset(_number(pid) for pid in row.get("gone", ())),
            "new" if row.get("dips") == "new" else "hold",
            {int(pid): frozenset(map(str, names)) for pid, names in row.get("elsewhere", {}).items()},
            frozenset(_number(pid) for pid in row.get("asleep", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise NotARecording(f"recording: a reading is malformed ({type(fault).__name__}: {str(fault)[:80]}).") from None


def _counter(one: Mapping[str, Any]) -> Counter:
    ticks = one.get("total")
    return Counter(
        _number(one["pid"]),
        str(one["client"]),
        str(one["engine"]),
        _number(one["value"]),
        None if ticks is None else _number(ticks),
        _number(one.get("capacity", 1)),
        str(one.get("device", "")),
    )


def _added(one: Mapping[str, Any]) -> Added:
    low, high = one.get("low_ns"), one.get("high_ns")
    return Added(
        _number(one["pid"]),
        _number(one["busy_ns"]),
        None if low is None else _number(low),
        None if high is None else _number(high),
    )


def _number(value: Any) -> int:
    number = whole(value, most=(1 << 128) - 1)
    if number is None:
        raise ValueError(f"must be a whole number, 0 or more; found {str(value)[:40]}")
    return number
