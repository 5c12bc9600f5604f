"""Ctrl-C and its kin as a question that can be asked, so that a job is ended in order and not in the middle of a line.

SIGINT, SIGTERM and SIGHUP count; one that was ignored before stays so, as `nohup` wants it.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Interrupts:
    """While the block lasts, `count` says how many came and `name` which came last. For the main thread."""

    def __init__(self) -> None:
        self.count = 0
        self.name = ""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
