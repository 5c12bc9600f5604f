"""Waiting for something to become true, with a deadline that a loaded machine can hold."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 60.0


def eventually(true: Callable[[], bool], what: str) -> None:
    """Return as soon as it is true; fail, naming it, after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S:.0f} s: {what}"
        time.sleep(0.01)
