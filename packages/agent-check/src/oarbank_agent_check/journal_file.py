"""The journal on the disk: lines are only ever appended, each handed to the system at once.

An agent that was killed in the middle of a line leaves half of one; the next run ends it before it writes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from oarbank_agent_check.jobs.faults import HostFault, UsageError

_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)  # Windows would turn line feeds into two bytes


class JournalFile:
    """An open journal; called with lines it appends them. Raises `UsageError` for a file that cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _FLAGS, 0o644)
        except (OSError, ValueError) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise UsageError(f"--journal {path}: must be a file to append to; {why}. Give another.") from None
        self._torn = _is_torn(self._fd)

    def __call__(self, lines: Sequence[str]) -> None:
        """Append lines. Raises `HostFault` where the disk refuses them."""
        data = ("\n" if self._torn else "").encode() + "".join(f"{line}\n" for line in lines).encode()
        self._torn = False
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except OSError as exc:
            why = exc.strerror or exc
            raise HostFault(f"{self._path}: the journal must be written; {why}. Free some space.") from None

    def __enter__(self) -> JournalFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        os.close(self._fd)


def _is_torn(number: int) -> bool:
    """Say whether the last line has no end; a pipe or a terminal has no last line."""
    try:
        if os.lseek(number, 0, os.SEEK_END) == 0:
            return False
        os.lseek(number, -1, os.SEEK_END)
        return os.read(number, 1) != b"\n"
    except OSError:
        return False
