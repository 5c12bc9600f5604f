"""Which files of other places a runner's processes hold open for writing, from Linux' /proc.

It sees what stays open from one look to the next; a file that is written and closed in between is not seen, and
elsewhere than on Linux nothing is. It never judges.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR
_NO_PLACES = ("/dev/", "/proc/", "/memfd:", "/sys/")


class OpenFiles:
    """Gathers them, look by look; `inside` are the places that may be written to."""

    def __init__(self, inside: Iterable[Path]) -> None:
        self.known = os.path.isdir("/proc/self/fdinfo")
        self.seen: set[str] = set()
        self.looks = 0  # at processes that could be looked at
        self._inside = tuple(f"{path}/" for path in inside)

    def look(self, pids: Iterable[int]) -> None:
        """Look once at what some processes hold; those that are gone hold nothing."""
        if not self.known:
            return
        for pid in pids:
            with contextlib.suppress(OSError):
                numbers = os.listdir(f"/proc/{pid}/fd")
                self.looks += 1
                for number in numbers:
                    self._one(pid, number)

    def _one(self, pid: int, number: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            path = os.readlink(f"/proc/{pid}/fd/{number}")
            if not path.startswith("/") or path.startswith((*_NO_PLACES, *self._inside)):
                return
            with open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
                flags = next(line for line in file if line.startswith(b"flags:")).split()[1]
            if int(flags, 8) & _WRITES:
                self.seen.add(path.removesuffix(" (deleted)"))
