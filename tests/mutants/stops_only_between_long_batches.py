"""Breaks the stop: it looks for one between batches of units that last two and a half seconds."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import Control, StandIn

BREAKS = {"duty.stop"}


class Batches(Control):
    def refresh(self) -> bool:
        applied = super().refresh()
        if self.stop:
            self.stop = False
            later = threading.Timer(2.5, self.end_batch)
            later.daemon = True
            later.start()
        return applied

    def end_batch(self) -> None:
        self.stop = True
        self.wake()


class Runner(StandIn):
    def control(self) -> Control:
        return Batches()


if __name__ == "__main__":
    sys.exit(Runner().main())
