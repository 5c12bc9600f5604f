"""Windows' pdh.dll that follows a script, and the bytes that it writes."""

# ruff: noqa: N802  the names are the system's

from __future__ import annotations

import ctypes
import struct
from typing import Any

from oarbank_agent_check.sources.pdh_parse import ITEM_BYTES, Item
from oarbank_agent_check.sources.pdh_read import MORE_DATA


def array(address: int, items: list[Item]) -> bytes:
    """Lay items out as Windows does: the array, then the names that it points to."""
    head, names = b"", b""
    for one in items:
        at = address + ITEM_BYTES * len(items) + len(names)
        names += one.name.encode("utf-16-le") + b"\0\0"
        head += struct.pack("<QIIIIqqII", at, one.status or 0, 1, 2, 0, one.value or 0, 5, 1, 0)
    return head + names


class ScriptedPdh:
    """pdh.dll that follows a script: each collection has the next items, or fails with a status."""

    def __init__(self, *script: Any, add: int = 0, grows: int = 0) -> None:
        self.script = list(script)
        self.add = add
        self.grows = grows  # how often the list grew after its size was told
        self.now: Any = None
        self.opened = self.closed = 0
        self.path = ""

    def PdhOpenQueryW(self, source, user, query):
        self.opened += 1
        query._obj.value = 11
        return 0

    def PdhAddEnglishCounterW(self, query, path, user, counter):
        self.path = path
        return self.add - (1 << 32) if self.add else 0  # ctypes may hand out a signed number

    def PdhCollectQueryData(self, query):
        self.now = self.script.pop(0)
        return self.now if isinstance(self.now, int) else 0

    def PdhGetRawCounterArrayW(self, counter, size, count, buffer):
        held = size._obj.value
        needed = len(array(0, self.now))
        if buffer is None or held < needed or self.grows:
            self.grows -= bool(self.grows and buffer is not None)
            size._obj.value = needed
            return MORE_DATA if needed else 0
        content = array(ctypes.addressof(buffer), self.now)
        ctypes.memmove(buffer, content, len(content))
        count._obj.value = len(self.now)
        return 0

    def PdhCloseQuery(self, query):
        self.closed += 1
        return 0
