"""Read a protected program's progress: one number that only grows, from a file or from a command.

Frames, steps, samples: anything that counts what the program is for. It touches the file or the process and judges
nothing; a strange answer is a fault with a reason and never a number.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from oarbank_agent_check.owner_command import OwnerCommand, parse

COMMAND_LIMIT_S = 5.0
LOOK_S = 0.002
TRIES = 5
"""A file that is written anew is empty for a moment: it is read again before that is a fault."""

MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Count:
    """The counter at a moment of the monotonic clock; `value` is None where it could not be read, and `fault` why."""

    at: float
    value: float | None
    fault: str | None = None


class Progress(Protocol):
    """A counter that can be read."""

    kind: Literal["file", "command"]

    def read(self) -> Count:
        """Read it now."""


class FileProgress:
    """A file that holds the number and nothing else."""

    kind: Literal["file", "command"] = "file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Count:
        """Read the file."""
        data = b""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(LOOK_S)
            at = time.monotonic()
            try:
                data = self._bytes()
            except (OSError, ValueError) as exc:
                why = getattr(exc, "strerror", None) or exc
                return Count(at, None, f"{self._path}: must be readable; {why}")
            value = parse(data)
            if value is not None:
                return Count(at, value)
        return Count(time.monotonic(), None, f"{self._path}: must hold one number, 0 or more; found {data[:60]!r}")

    def _bytes(self) -> bytes:
        # Not blocking: what stands there may be a pipe that nobody writes into.
        number = os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            return os.read(number, MOST_BYTES)
        finally:
            os.close(number)


class CommandProgress:
    """A line for the shell that prints the number; its moment is the middle of its run."""

    kind: Literal["file", "command"] = "command"

    def __init__(self, command: str) -> None:
        self._command = command

    def read(self) -> Count:
        """Run the command, 5 s at most."""
        command = OwnerCommand(self._command)
        began = time.monotonic()
        try:
            command.ask()
            done = False
            while not done:
                done, value = command.answer()
                now = time.monotonic()
                if done and value is not None:
                    return Count((began + now) / 2, value)
                if now - began > COMMAND_LIMIT_S:
                    return Count(now, None, f"the command must answer within {COMMAND_LIMIT_S:.0f} s; it did not")
                time.sleep(LOOK_S)
            return Count(time.monotonic(), None, f"the command: {command.fault}")
        finally:
            command.close()


def progress(given: str) -> FileProgress | CommandProgress:
    """Give the counter that a word names: `@FILE`, or a command."""
    return FileProgress(Path(given[1:])) if given.startswith("@") else CommandProgress(given)
