r"""Reads Windows' performance counters through pdh.dll; the source's one file that touches the machine.

One query with one wildcard counter, `\GPU Engine(*)\Running Time` by its English name, stays open: each collection
gives every instance there is, new processes included. Raw values need no second collection. It decides nothing:
`pdh_parse` does.

Never run: Windows; written from documentation, tested against a scripted library.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from oarbank_agent_check.gpu_readings import GpuReading
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.pdh_parse import Item, owner_of, parse_array, reading_of

PATH = r"\GPU Engine(*)\Running Time"
MORE_DATA, NO_OBJECT, NO_COUNTER = 0x800007D2, 0xC0000BB8, 0xC0000BB9
NO_INSTANCE, NO_DATA = 0x800007D1, 0x800007D5
TRIES = 8
"""How often the list is fetched again when it grew between asking for its size and fetching it."""

HERE = {"linux": "Linux", "darwin": "macOS"}


class PdhReader:
    """Reads all GPUs of Windows. `library` is pdh.dll as ctypes loads it, or anything with its functions."""

    name = "pdh"
    reads = r"the running time of each process on each GPU engine, from Windows' counters \GPU Engine(*)"

    def __init__(
        self, library: Any = None, *, platform: str = sys.platform, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pdh = library
        self._platform = platform
        self._clock = clock
        self._query = ctypes.c_void_p()
        self._counter = ctypes.c_void_p()
        self._open = False

    def hindrance(self) -> Unknown | None:
        """Say why it can't read here; opens the query and collects once."""
        if self._platform != "win32":
            here = HERE.get(self._platform, self._platform)
            return Unknown(f"this is {here}: Windows only. Nothing to do.")
        items = self._collect()
        return items if isinstance(items, Unknown) else None

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        """Collect once."""
        pids = {key.pid for key in members}
        items = self._collect()
        if isinstance(items, Unknown):
            return GpuReading(self._clock(), unknown=dict.fromkeys(pids, items), dips="new")
        return reading_of(self._clock(), items, pids)

    def raw(self, members: Collection[ProcessKey]) -> Any:
        """Collect once and give the members' instances; None where that failed."""
        pids = {key.pid for key in members}
        t, items = self._clock(), self._collect()
        if isinstance(items, Unknown):
            return None
        mine = [item for item in items if owner_of(item.name) in pids]
        return {"t_s": t, "items": [{"name": i.name, "CStatus": i.status, "FirstValue": i.value} for i in mine]}

    def recording(self, raws: Sequence[Any]) -> Mapping[str, bytes]:
        """Give the readings as one JSON file."""
        readings = [raw for raw in raws if raw is not None]
        document = {"counter": PATH, "readings": readings}
        return {"pdh.json": json.dumps(document, indent=1).encode()} if readings else {}

    def close(self) -> None:
        """Close the query. A second call does nothing."""
        if self._open:
            self._open = False
            self._pdh.PdhCloseQuery(self._query)

    def _collect(self) -> list[Item] | Unknown:
        fault = self._begin()
        if fault is not None:
            return fault
        status = self._status(self._pdh.PdhCollectQueryData(self._query))
        if status in (NO_INSTANCE, NO_DATA):
            return []  # the counters are there, and nobody has a GPU engine open
        return self._fetch() if status == 0 else _failed("PdhCollectQueryData", status)

    def _fetch(self) -> list[Item] | Unknown:
        size, count = ctypes.c_uint32(0), ctypes.c_uint32(0)
        buffer: Any = None
        status = MORE_DATA
        for _ in range(TRIES):
            status = self._status(
                self._pdh.PdhGetRawCounterArrayW(self._counter, ctypes.byref(size), ctypes.byref(count), buffer)
            )
            if status == 0:
                found = b"" if buffer is None else buffer.raw
                return parse_array(found, 0 if buffer is None else ctypes.addressof(buffer), count.value)
            if status in (NO_INSTANCE, NO_DATA):
                return []
            if status != MORE_DATA:
                break
            # A quarter more: processes may start before the next call.
            size.value += size.value // 4 + 1024
            buffer = ctypes.create_string_buffer(size.value)
        return _failed("PdhGetRawCounterArrayW", status)

    def _begin(self) -> Unknown | None:
        if self._open:
            return None
        if self._pdh is None:
            try:
                self._pdh = _load()
            except (OSError, AttributeError) as fault:
                return Unknown(f"pdh.dll can't be loaded ({str(fault)[:80]}). This source needs Windows.")
        if ctypes.sizeof(ctypes.c_void_p) != 8:
            return Unknown("this Python has 32 bits; the layout of the counters is known for 64. Use a 64-bit Python.")
        status = self._status(self._pdh.PdhOpenQueryW(None, 0, ctypes.byref(self._query)))
        if status:
            return _failed("PdhOpenQueryW", status)
        self._open = True
        status = self._status(self._pdh.PdhAddEnglishCounterW(self._query, PATH, 0, ctypes.byref(self._counter)))
        if status:
            self.close()
            return _failed("PdhAddEnglishCounterW", status)
        return None

    @staticmethod
    def _status(status: int) -> int:
        return status & 0xFFFFFFFF  # ctypes may give it with a sign


def _load() -> Any:
    pdh = ctypes.WinDLL("pdh")  # type: ignore[attr-defined]
    pointer, number = ctypes.c_void_p, ctypes.c_uint32
    pdh.PdhOpenQueryW.argtypes = [ctypes.c_wchar_p, ctypes.c_size_t, pointer]
    pdh.PdhAddEnglishCounterW.argtypes = [pointer, ctypes.c_wchar_p, ctypes.c_size_t, pointer]
    pdh.PdhCollectQueryData.argtypes = [pointer]
    pdh.PdhGetRawCounterArrayW.argtypes = [pointer, pointer, pointer, pointer]
    pdh.PdhCloseQuery.argtypes = [pointer]
    for name in ("OpenQueryW", "AddEnglishCounterW", "CollectQueryData", "GetRawCounterArrayW", "CloseQuery"):
        getattr(pdh, f"Pdh{name}").restype = number
    return pdh


def _failed(what: str, status: int) -> Unknown:
    if status in (NO_OBJECT, NO_COUNTER):
        return Unknown(
            "Windows has no GPU Engine counters here (Server Core, counters switched off, or a driver older than"
            " WDDM 2). Rebuild them: lodctr /r."
        )
    return Unknown(f"{what} failed with {status:#x}. If it lasts, rebuild the counters: lodctr /r.")
