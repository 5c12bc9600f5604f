"""Breaks a switch: it obeys 0, and takes every duty above that for the first one it was given."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.switches"}


class First(Control):
    first: float | None = None

    def refresh(self) -> bool:
        applied = super().refresh()
        if self.gpu_duty:
            self.first = self.gpu_duty = self.first or self.gpu_duty
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return First()


if __name__ == "__main__":
    sys.exit(Runner().main())
