"""The two frameworks of macOS on a scripted registry: every object and value is a number, as the reader sees them."""

# ruff: noqa: N802  the names are the system's

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STRING, ARRAY, DICTIONARY, NUMBER, OTHER = range(1, 6)


class Mac:
    """`accelerators` are lists of clients, each (registry id, properties); it counts what is held and let go."""

    def __init__(self, *accelerators: list[tuple[int, dict[str, Any]]], changes: int = 0, fails: str = "") -> None:
        self.accelerators = list(accelerators)
        self.changes = changes  # how many walks the registry changes under
        self.fails = fails
        self.objects: dict[int, Any] = {}
        self.values: dict[int, Any] = {}
        self.next = 100
        self.walks = 0

    def hold(self, kept: dict[int, Any], value: Any) -> int:
        self.next += 1
        kept[self.next] = value
        return self.next

    # ---- IOKit
    def IOServiceMatching(self, name: bytes) -> int:
        assert name == b"IOAccelerator"
        return 1

    def IOServiceGetMatchingServices(self, port: int, matching: int, iterator: Any) -> int:
        self.walks += 1
        found = [("accelerator", clients) for clients in self.accelerators]
        iterator._obj.value = self.hold(self.objects, found) if found else 0
        return 0xE00002BC - (1 << 32) if self.fails == "matching" else 0

    def IOIteratorNext(self, iterator: Any) -> int:
        left = self.objects[iterator.value]
        return self.hold(self.objects, left.pop(0)) if left else 0

    def IOIteratorIsValid(self, iterator: Any) -> int:
        assert iterator.value in self.objects
        return int(self.walks > self.changes)

    def IOObjectRelease(self, thing: Any) -> int:
        del self.objects[getattr(thing, "value", thing)]
        return 0

    def IORegistryEntryGetChildIterator(self, entry: int, plane: bytes, iterator: Any) -> int:
        assert plane == b"IOService"
        clients = list(self.objects[entry][1])
        iterator._obj.value = self.hold(self.objects, clients) if clients else 0
        return 0

    def IORegistryEntryGetRegistryEntryID(self, entry: int, number: Any) -> int:
        if self.objects[entry][0] == 0:  # it has closed
            return 1
        number._obj.value = self.objects[entry][0]
        return 0

    def IORegistryEntryCreateCFProperty(self, entry: int, key: int, allocator: None, options: int) -> int:
        properties = self.objects[entry][1]
        name = self.values[key]
        return self.hold(self.values, properties[name]) if name in properties else 0

    # ---- CoreFoundation
    def CFStringCreateWithCString(self, allocator: None, text: bytes, encoding: int) -> int:
        return self.hold(self.values, text.decode())

    def CFStringGetCString(self, value: int, buffer: Any, size: int, encoding: int) -> bool:
        text = self.values[value].encode()
        if len(text) >= size:
            return False
        buffer.value = text
        return True

    def CFGetTypeID(self, value: int) -> int:
        types = {str: STRING, list: ARRAY, dict: DICTIONARY, int: NUMBER}
        return types.get(type(self.values[value]), OTHER)

    CFStringGetTypeID: Callable[[], int] = staticmethod(lambda: STRING)
    CFArrayGetTypeID: Callable[[], int] = staticmethod(lambda: ARRAY)
    CFDictionaryGetTypeID: Callable[[], int] = staticmethod(lambda: DICTIONARY)
    CFNumberGetTypeID: Callable[[], int] = staticmethod(lambda: NUMBER)

    def CFArrayGetCount(self, value: int) -> int:
        return len(self.values[value])

    def CFArrayGetValueAtIndex(self, value: int, index: int) -> int:
        return self.borrow(self.values[value][index])

    def CFDictionaryGetValue(self, value: int, key: int) -> int:
        found = self.values[value].get(self.values[key])
        return 0 if found is None else self.borrow(found)

    def CFNumberGetValue(self, value: int, kind: int, number: Any) -> bool:
        assert kind == 4
        found = self.values[value]
        number._obj.value = found
        return -(1 << 63) <= found < 1 << 63

    def CFRelease(self, value: int) -> None:
        del self.values[value]

    def borrow(self, value: Any) -> int:
        """Give a value that belongs to another one: it must not be released, so it isn't counted."""
        self.next += 1
        borrowed = -self.next
        self.values[borrowed] = value
        return borrowed

    def held(self) -> int:
        """Say how many objects and values are still held."""
        return len(self.objects) + sum(key > 0 for key in self.values)
