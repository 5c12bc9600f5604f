"""Breaks the smallest duty: 0 is falsy, so it takes 0 for no limit."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.follows"}


class Falsy(Control):
    def refresh(self) -> bool:
        applied = super().refresh()
        self.gpu_duty = self.gpu_duty or None
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Falsy()


if __name__ == "__main__":
    sys.exit(Runner().main())
