"""Progress events: how far the batch is, at most one line a second, beside the governor's reports.

The governor appends to the same file, so each line is one write on a descriptor in append mode. An event that cannot be
written is said once and forgotten: it must never cost the batch.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

EVERY_S = 1.0
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line feeds into two bytes


class ProgressEvents:
    """Call it with (prompts done, tokens); it writes when a second has passed, and for the last prompt."""

    def __init__(
        self,
        path: str | None,
        prompts: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._prompts = prompts
        self._clock = clock
        self._wall = wall
        self._next_s = clock() + EVERY_S
        self._done = False

    def __call__(self, prompts: int, tokens: int) -> None:
        """Perhaps write an event."""
        if self._path is None or self._done:
            return
        now_s = self._clock()
        self._done = prompts >= self._prompts
        if now_s < self._next_s and not self._done:
            return
        self._next_s = now_s + EVERY_S
        event = {
            "t": round(self._wall(), 3),
            "kind": "progress",
            "fraction": round(prompts / self._prompts, 6),
            "msg": f"{prompts} of {self._prompts} prompts, {tokens} tokens",
        }
        self._append(json.dumps(event, allow_nan=False) + "\n")

    def _append(self, line: str) -> None:
        try:
            descriptor = os.open(self._path or "", os.O_WRONLY | os.O_APPEND | os.O_CREAT | _BINARY, 0o644)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as fault:
            self._done = True
            print(f"{self._path}: no progress events from here on; {fault.strerror}", file=sys.stderr)
