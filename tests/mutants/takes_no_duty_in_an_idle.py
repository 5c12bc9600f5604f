"""Breaks the way up: a wait at duty 0 hears of a stop, and of no other duty."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.wakes"}


class Sleeps(Control):
    def refresh(self) -> bool:
        asleep = self.gpu_duty == 0.0
        applied = super().refresh()
        if asleep:
            self.gpu_duty = 0.0
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Sleeps()


if __name__ == "__main__":
    sys.exit(Runner().main())
