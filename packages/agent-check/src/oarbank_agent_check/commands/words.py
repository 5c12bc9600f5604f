"""What the commands share: exit codes, the words that several take, and lines on standard output."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable

Commands = argparse._SubParsersAction  # what add_subparsers() gives; argparse has no public name for it

YES = TOLD = 0
NO, WRONG_USE, COULD_NOT_TELL = 1, 2, 3
MOST_PID = (1 << 31) - 1
SHORTEST_S, LONGEST_S = 0.05, 3600.0


class WrongUse(Exception):
    """The words or files given can't work: one line that says where, what must hold, what was found, what to do."""


class CouldNotTell(Exception):
    """The question has no answer here: one line that says why and what to do."""


class Unwritable(Exception):
    """A line could not be written; the text is the system's reason."""


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, at once. Raises BrokenPipeError when the reader left, `Unwritable` otherwise."""
    try:
        print("\n".join(lines), flush=True)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise Unwritable(exc.strerror or str(exc)) from None


def pid(text: str) -> int:
    """Read a process id."""
    number = int(text[:4000]) if text.isascii() and text.isdigit() else 0  # Python refuses to read far longer ones
    if not number:
        raise argparse.ArgumentTypeError(f"must be a process id, 1 or more; found {text[:80]!r}")
    if number > MOST_PID:
        raise argparse.ArgumentTypeError(f"must be a process that runs on this machine; no such process: {text[:80]}")
    return number


def count(text: str) -> int:
    """Read a number of samples, 0 or more."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more; found {text[:80]!r}")
    return int(text)


def interval(text: str) -> float:
    """Read the seconds of a sample."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not SHORTEST_S <= seconds <= LONGEST_S:  # false for NaN too
        limits = f"{SHORTEST_S} to {LONGEST_S:.0f} seconds"
        raise argparse.ArgumentTypeError(f"must be {limits}; found {text[:80]!r}")
    return seconds
