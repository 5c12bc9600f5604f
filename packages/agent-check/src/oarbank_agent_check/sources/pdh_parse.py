r"""Windows' performance counters `\GPU Engine(*)\Running Time`: raw values turned into counters of processes.

Decides whose an instance is, and which values count. An instance is one engine of one adapter in one process, named
`pid_P_luid_0xHI_0xLO_phys_N_eng_E_engtype_TYPE`; its raw value is the running time since the process opened the
engine, in units of 100 ns. Types are never filtered: new ones appear. Raw `Utilization Percentage` is the same time.
Pure.

Never run: Windows; written from documentation, tested on published readings.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources.json_recording import looks_like, moments, parse_object, whole

UNIT_NS = 100
ITEM_BYTES = 48
"""One PDH_RAW_COUNTER_ITEM_W on 64-bit Windows: a name pointer at 0, then the PDH_RAW_COUNTER of 40 bytes at 8."""

STATUS_AT, FIRST_VALUE_AT = 8, 24
VALID = (0, 1)
"""PDH_CSTATUS_VALID_DATA and PDH_CSTATUS_NEW_DATA; with any other status the value means nothing."""

_INSTANCE = re.compile(r"pid_([0-9]{1,10})_(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Item:
    """One instance as PDH gave it; `value` is None where there was no usable number."""

    name: str
    status: int | None
    value: int | None


def parse_array(buffer: bytes, address: int, count: int) -> list[Item]:
    """Read what PdhGetRawCounterArrayW wrote into a buffer that lies at `address`: names are pointers into it.

    An item that doesn't fit, or whose name points elsewhere, is left out.
    """
    items = []
    for at in range(0, min(count, len(buffer) // ITEM_BYTES) * ITEM_BYTES, ITEM_BYTES):
        (name_at,) = struct.unpack_from("<Q", buffer, at)
        (status,) = struct.unpack_from("<I", buffer, at + STATUS_AT)
        (value,) = struct.unpack_from("<q", buffer, at + FIRST_VALUE_AT)
        name = _wide_text(buffer, name_at - address)
        if name is not None:
            items.append(Item(name, status, value))
    return items


def _wide_text(buffer: bytes, start: int) -> str | None:
    if not 0 <= start < len(buffer):
        return None
    end = start
    while end + 2 <= len(buffer) and buffer[end : end + 2] != b"\0\0":
        end += 2
    return buffer[start:end].decode("utf-16-le", "replace")


def owner_of(name: str) -> int | None:
    """Give the process of an instance; None for _Total and the like, which belong to nobody."""
    found = _INSTANCE.fullmatch(name.casefold())
    return int(found[1]) if found else None


def reading_of(t: float, items: Iterable[Item], pids: Collection[int]) -> GpuReading:
    """Give the counters of `pids`: names without regard to case, values of equal names added up.

    A process of which any instance has no value is unknown, and that instance is left out.
    """
    values: dict[tuple[int, str], list[int]] = {}
    unknown: dict[int, Unknown] = {}
    for item in items:
        found = _INSTANCE.fullmatch(item.name.casefold())
        if found is None or int(found[1]) not in pids:  # _Total and the like belong to nobody
            continue
        pid = int(found[1])
        if item.status not in VALID or item.value is None or item.value < 0:
            unknown[pid] = _no_value(pid, item)
            values[pid, found[2]] = []
        elif values.get((pid, found[2])) != []:
            values.setdefault((pid, found[2]), []).append(item.value)
    counters = tuple(
        Counter(pid, f"{pid}/{engine}", engine, sum(parts) * UNIT_NS, capacity=len(parts))
        for (pid, engine), parts in values.items()
        if parts
    )
    return GpuReading(t, counters, unknown=unknown, dips="new")


def _no_value(pid: int, item: Item) -> Unknown:
    status = "no status" if item.status is None else f"status {item.status:#x}"
    return Unknown(
        f"Windows gave no value for a GPU engine of pid {pid} ({status}). If it lasts, rebuild the counters: lodctr /r."
    )


def recognises(document: bytes) -> bool:
    """Say whether this is a recording of PDH: readings that hold `items`."""
    return looks_like(document, ["readings"], frozenset({"items"}))


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings, one after the other; raises NotARecording and nothing else."""
    return [_recorded(t, row, pids) for document in documents for t, row in moments(parse_object(document))]


def _recorded(t: float, row: dict, pids: Collection[int]) -> GpuReading:
    items = row.get("items")
    if not isinstance(items, list):
        why = Unknown("the recording has no items at this moment. Record again.")
        return GpuReading(t, unknown=dict.fromkeys(pids, why), dips="new")
    return reading_of(t, [_recorded_item(item) for item in items if isinstance(item, dict)], pids)


def _recorded_item(item: dict) -> Item:
    name = item.get("name")
    return Item(name if isinstance(name, str) else "", whole(item.get("CStatus")), whole(item.get("FirstValue")))
