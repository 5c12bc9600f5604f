"""Standard output and standard error for a command that was started with either of them closed.

Python then has None in their place, and the next file that is opened gets the number of the missing one: what a
library writes to standard error would land in it. It gives each a stream on the null device, and decides nothing else.
"""

from __future__ import annotations

import io
import os
import sys


def open_closed_outputs() -> None:
    """Fill the places. Output that was closed takes nothing, which is an OSError like a full disk; errors go nowhere.

    Call it before any file is opened.
    """
    if sys.stdout is None:
        sys.stdout = _null(os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _null(os.O_WRONLY)


def _null(flags: int) -> io.TextIOWrapper:
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, descriptor <= 2)
    # Without a buffer nothing is left over that the interpreter would fail on at its end.
    return io.TextIOWrapper(io.FileIO(descriptor, "w"), write_through=True)  # type: ignore[arg-type]
