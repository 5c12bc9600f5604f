"""The metadata at the beginning of a GGUF file, read without a backend. Pure: bytes in, a dictionary out.

Only single values are kept; of an array its length alone, and its numbers where there are few. The bytes may be the
beginning of the file: what they do not hold is left out, never guessed.
"""

from __future__ import annotations

import struct
from typing import Any

MAGIC = b"GGUF"
MOST_KEYS = 100_000
_FEW = 1024  # numbers of an array that are kept
_STRING, _ARRAY = 8, 9
# The format's value types by number: unsigned and signed 8, 16 and 32 bits, float, bool; then 64 bits.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class NotGguf(Exception):
    """The bytes are no GGUF; the text says why."""


class _Short(Exception):
    """The bytes end here."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise _Short
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def number(self, kind: int) -> int | float | bool:
        code = _NUMBERS[kind]
        return struct.unpack(f"<{code}", self.take(struct.calcsize(code)))[0]

    def text(self) -> str:
        return self.take(int(self.number(10))).decode("utf-8", "replace")


def metadata(data: bytes) -> dict[str, Any]:
    """Key to value for what `data` holds of it. Raises `NotGguf`."""
    if data[:4] != MAGIC:
        raise NotGguf("its first bytes are not GGUF")
    reader = _Reader(data[4:])
    found: dict[str, Any] = {}
    try:
        version = reader.number(4)
        if version not in (2, 3):
            raise NotGguf(f"its version is {version}, not 2 or 3")
        reader.number(10)  # tensors
        count = int(reader.number(10))
        for _ in range(min(count, MOST_KEYS)):
            key = reader.text()
            found[key] = _value(reader, int(reader.number(4)))
    except _Short:
        pass
    return found


def _value(reader: _Reader, kind: int) -> Any:
    if kind == _STRING:
        return reader.text()
    if kind == _ARRAY:
        return _array(reader)
    if kind not in _NUMBERS:
        raise NotGguf(f"a value's type is {kind}, which the format does not have")
    return reader.number(kind)


def _array(reader: _Reader) -> Any:
    kind, count = int(reader.number(4)), int(reader.number(10))
    if kind == _STRING:
        for _ in range(count):
            reader.take(int(reader.number(10)))
        return count
    if kind not in _NUMBERS:
        raise NotGguf(f"an array's type is {kind}, which is not read here")
    if count <= _FEW:
        return [reader.number(kind) for _ in range(count)]
    reader.take(struct.calcsize(_NUMBERS[kind]) * count)
    return count
