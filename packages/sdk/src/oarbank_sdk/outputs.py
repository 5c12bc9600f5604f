"""Standard output and standard error made fit for a command: there, and able to take the name of any file.

Python has None for a stream that was closed, and the next file that is opened gets its number: what a library writes to
standard error would land in it. And its standard output refuses a file's name that is no UTF-8. Nothing else is decided
here.
"""

from __future__ import annotations

import io
import os
import sys


def prepare_outputs() -> None:
    """Call it before any file is opened.

    Output that was closed takes nothing, which is an OSError like a full disk; errors then go nowhere. A character that
    the output does not know is written as standard error writes it, with a backslash.
    """
    if sys.stdout is None:
        sys.stdout = _null(os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _null(os.O_WRONLY)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _null(flags: int) -> io.TextIOWrapper:
    descriptor = os.open(os.devnull, flags)
    os.set_inheritable(descriptor, descriptor <= 2)
    # Without a buffer nothing is left over that the interpreter would fail on at its end.
    return io.TextIOWrapper(io.FileIO(descriptor, "w"), encoding="utf-8", write_through=True)  # type: ignore[arg-type]
