"""Walks macOS' IORegistry for the clients of its GPUs; the source's one file that touches the machine.

Through ctypes on IOKit and CoreFoundation, about 2 ms for a walk; where that fails, the program `ioreg` is started.
The clients are children of the accelerators in the service plane: they aren't registered, so matching their class
finds nothing. No root and no entitlement is needed, for other users' processes neither. It decides nothing:
`ioreg_parse` does.

Never run: macOS; written from published code, tested against a scripted library.
"""

from __future__ import annotations

import ctypes
import plistlib
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from oarbank_agent_check.gpu_readings import GpuReading, NotARecording
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.ioreg_parse import (
    CHILDREN,
    CREATOR,
    NO_SOURCE,
    TIME,
    USAGE,
    Client,
    client_of,
    entry_of,
    parse_plist,
    reading_of,
)

COMMAND = ("/usr/sbin/ioreg", "-a", "-r", "-c", "IOAccelerator", "-l")
PATIENCE_S = 5.0
"""How long ioreg may take: it is a process start and megabytes of text."""

TRIES = 3
"""How often a walk begins again when the registry changed under it."""

UTF8, SINT64 = 0x08000100, 4  # kCFStringEncodingUTF8, kCFNumberSInt64Type
MOST_BYTES = 1024
_FRAMEWORKS = "/System/Library/Frameworks/{0}.framework/{0}"


class WalkFailed(OSError):
    """The registry could not be walked; the text says where."""


class IoregReader:
    """Reads all GPUs of a Mac. `iokit` and `foundation` are the two frameworks, or anything with their functions."""

    name = "ioreg"
    reads = "the GPU time of each client of the GPUs, from macOS' IORegistry"

    def __init__(
        self,
        iokit: Any = None,
        foundation: Any = None,
        *,
        platform: str = sys.platform,
        clock: Callable[[], float] = time.monotonic,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._frameworks = None if iokit is None or foundation is None else (iokit, foundation)
        self._walk: RegistryWalk | None = None
        self._platform = platform
        self._clock = clock
        self._command = command

    def hindrance(self) -> Unknown | None:
        """Say why it can't read here; walks the registry once."""
        if self._platform != "darwin":
            here = {"linux": "Linux", "win32": "Windows"}.get(self._platform, self._platform)
            return Unknown(f"this is {here}: macOS only. Nothing to do.")
        found = self._clients()
        return found if isinstance(found, Unknown) else None

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        """Walk once."""
        pids = {key.pid for key in members}
        found = self._clients()
        if isinstance(found, Unknown):
            return GpuReading(self._clock(), unknown=dict.fromkeys(pids, found))
        return reading_of(self._clock(), found, pids)

    def raw(self, members: Collection[ProcessKey]) -> Any:
        """Walk once and give the members' clients as registry entries; None where that failed."""
        pids = {key.pid for key in members}
        found = self._clients()
        if isinstance(found, Unknown):
            return None
        return [entry_of(client) for client in found if client.pid in pids and client.entry is not None]

    def recording(self, raws: Sequence[Any]) -> Mapping[str, bytes]:
        """Give one plist a reading, as `ioreg -a` prints them."""
        devices = [[{CHILDREN: entries}] for entries in raws if entries is not None]
        return {f"ioreg.r{number}.plist": plistlib.dumps(device) for number, device in enumerate(devices, 1)}

    def close(self) -> None:
        """Release the strings that were made. A second call does nothing."""
        walk, self._walk = self._walk, None
        if walk is not None:
            walk.close()

    def _clients(self) -> list[Client] | Unknown:
        try:
            if self._walk is None:
                self._walk = RegistryWalk(*(self._frameworks or load()))
            found = self._walk.clients()
        except (OSError, AttributeError) as fault:  # no framework, a function less, or the walk failed
            return self._by_program(fault)
        return NO_SOURCE if found is None else found

    def _by_program(self, fault: Exception) -> list[Client] | Unknown:
        try:
            done = subprocess.run(self._command, capture_output=True, timeout=PATIENCE_S, check=True)
            found = parse_plist(done.stdout)
        except (OSError, subprocess.SubprocessError, NotARecording) as second:
            why = f"{str(fault)[:80]}; {str(second)[:80]}"
            return Unknown(f"the IORegistry could not be read ({why}). Try `ioreg -r -c IOAccelerator`.")
        return NO_SOURCE if found is None else found


class RegistryWalk:
    """One walk after another over the children of the accelerators; owns three strings of CoreFoundation."""

    def __init__(self, iokit: Any, foundation: Any) -> None:
        self._io, self._cf = iokit, foundation
        self._keys = {
            name: foundation.CFStringCreateWithCString(None, name.encode(), UTF8) for name in (CREATOR, USAGE, TIME)
        }

    def close(self) -> None:
        """Release the strings."""
        for key in self._keys.values():
            self._cf.CFRelease(key)
        self._keys = {}

    def clients(self) -> list[Client] | None:
        """Give the clients of all accelerators, None where there is no accelerator. Raises WalkFailed."""
        for _ in range(TRIES):
            found: dict[int | None, Client] = {}
            with self._accelerators() as iterator:
                undisturbed = [self._children(accelerator, found) for accelerator in self._objects(iterator)]
                if not undisturbed:
                    return None
                if all(undisturbed) and self._io.IOIteratorIsValid(iterator):
                    return list(found.values())
        raise WalkFailed("the registry changed during each of the walks")

    def _children(self, accelerator: int, found: dict[int | None, Client]) -> bool:
        """Add the clients of one accelerator; false when the registry changed meanwhile."""
        iterator = ctypes.c_uint32(0)
        self._check(self._io.IORegistryEntryGetChildIterator(accelerator, b"IOService", ctypes.byref(iterator)))
        if not iterator.value:  # no children at all
            return True
        try:
            for child in self._objects(iterator):
                client = self._client(child)
                if client is not None:
                    found[client.entry] = client
            return bool(self._io.IOIteratorIsValid(iterator))
        finally:
            self._io.IOObjectRelease(iterator)

    def _client(self, entry: int) -> Client | None:
        number = ctypes.c_uint64(0)
        if self._io.IORegistryEntryGetRegistryEntryID(entry, ctypes.byref(number)):
            return None  # it closed in between
        found = {name: self._property(entry, name) for name in (CREATOR, USAGE, TIME)}
        return client_of({name: value for name, value in found.items() if value is not None}, number.value)

    @contextmanager
    def _accelerators(self) -> Generator[ctypes.c_uint32]:
        iterator = ctypes.c_uint32(0)
        matching = self._io.IOServiceMatching(b"IOAccelerator")  # IOServiceGetMatchingServices uses it up
        self._check(self._io.IOServiceGetMatchingServices(0, matching, ctypes.byref(iterator)))
        try:
            yield iterator
        finally:
            if iterator.value:
                self._io.IOObjectRelease(iterator)

    def _objects(self, iterator: ctypes.c_uint32) -> Iterator[int]:
        """Give the objects of an iterator, each released when the next is asked for."""
        while iterator.value and (entry := self._io.IOIteratorNext(iterator)):
            try:
                yield entry
            finally:
                self._io.IOObjectRelease(entry)

    @staticmethod
    def _check(code: int) -> None:
        if code:
            raise WalkFailed(f"IOKit answered {code & 0xFFFFFFFF:#x}")

    # ---- values ----------------------------------------------------------------------------------
    def _property(self, entry: int, name: str) -> Any:
        """Give a property as Python's own values: None where it is absent, `...` where its form is unknown."""
        value = self._io.IORegistryEntryCreateCFProperty(entry, self._keys[name], None, 0)
        if not value:
            return None
        try:
            if name == CREATOR:
                return self._text(value)
            return self._usage(value) if name == USAGE else self._number(value)
        finally:
            self._cf.CFRelease(value)

    def _text(self, value: int) -> Any:
        if self._cf.CFGetTypeID(value) != self._cf.CFStringGetTypeID():
            return ...
        buffer = ctypes.create_string_buffer(MOST_BYTES)
        fits = self._cf.CFStringGetCString(value, buffer, MOST_BYTES, UTF8)
        return buffer.value.decode("utf-8", "replace") if fits else ...

    def _usage(self, value: int) -> Any:
        """Give AppUsage as a list with the one key that matters; what is no dictionary stays `...`."""
        cf = self._cf
        if cf.CFGetTypeID(value) != cf.CFArrayGetTypeID():
            return ...
        parts: list[Any] = []
        for index in range(cf.CFArrayGetCount(value)):
            part = cf.CFArrayGetValueAtIndex(value, index)
            if not part or cf.CFGetTypeID(part) != cf.CFDictionaryGetTypeID():
                parts.append(...)
                continue
            number = cf.CFDictionaryGetValue(part, self._keys[TIME])
            parts.append({TIME: self._number(number)} if number else {})
        return parts

    def _number(self, value: int) -> Any:
        number = ctypes.c_int64(0)
        if self._cf.CFGetTypeID(value) != self._cf.CFNumberGetTypeID():
            return ...
        exact = self._cf.CFNumberGetValue(value, SINT64, ctypes.byref(number))
        return number.value if exact else ...


def load() -> tuple[Any, Any]:
    """Load both frameworks and say how their functions are called; raises OSError or AttributeError elsewhere."""
    iokit, foundation = (ctypes.CDLL(_FRAMEWORKS.format(name)) for name in ("IOKit", "CoreFoundation"))
    # Without these, pointers would be cut to 32 bits. io_object_t is a number of 32 bits.
    pointer, text, entry, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_long
    forms = {
        iokit: {
            "IOServiceMatching": (pointer, [text]),
            "IOServiceGetMatchingServices": (ctypes.c_int, [entry, pointer, pointer]),
            "IOIteratorNext": (entry, [entry]),
            "IOIteratorIsValid": (ctypes.c_int, [entry]),
            "IOObjectRelease": (ctypes.c_int, [entry]),
            "IORegistryEntryGetChildIterator": (ctypes.c_int, [entry, text, pointer]),
            "IORegistryEntryGetRegistryEntryID": (ctypes.c_int, [entry, pointer]),
            "IORegistryEntryCreateCFProperty": (pointer, [entry, pointer, pointer, ctypes.c_uint32]),
        },
        foundation: {
            "CFStringCreateWithCString": (pointer, [pointer, text, ctypes.c_uint32]),
            "CFStringGetCString": (ctypes.c_ubyte, [pointer, text, number, ctypes.c_uint32]),
            "CFGetTypeID": (ctypes.c_ulong, [pointer]),
            "CFStringGetTypeID": (ctypes.c_ulong, []),
            "CFArrayGetTypeID": (ctypes.c_ulong, []),
            "CFDictionaryGetTypeID": (ctypes.c_ulong, []),
            "CFNumberGetTypeID": (ctypes.c_ulong, []),
            "CFArrayGetCount": (number, [pointer]),
            "CFArrayGetValueAtIndex": (pointer, [pointer, number]),
            "CFDictionaryGetValue": (pointer, [pointer, pointer]),
            "CFNumberGetValue": (ctypes.c_ubyte, [pointer, number, pointer]),
            "CFRelease": (None, [pointer]),
        },
    }
    for library, functions in forms.items():
        for name, (result, arguments) in functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    return iokit, foundation
