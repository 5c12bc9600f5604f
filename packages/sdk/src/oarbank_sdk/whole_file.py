"""The bytes of a file that a person named, or of standard input, up to a size: a device without an end is a wrong file.

It reads, and knows nothing of what is in it. What cannot be read is an OSError, whose `strerror` is for a person.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path

MOST_BYTES = 256 << 20
"""No document, payload, journal or file of prompts that a person hands over is as large."""


def read_whole(name: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the bytes of a file. Raises OSError, and ValueError for a name that no file can have."""
    with open(name, "rb") as file:
        data = file.read(most + 1)
    return _bounded(data, most)


def read_standard_input(most: int = MOST_BYTES) -> bytes:
    """Return what comes until the end of standard input. Raises OSError, also where it is closed."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, "it is closed")
    return _bounded(sys.stdin.buffer.read(most + 1), most)


def _bounded(data: bytes, most: int) -> bytes:
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most >> 20} MiB")
    return data
