"""Breaks the stop in the middle of an idle: a wait at duty 0 hears of other duties, and of no stop."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.stop"}
PLAN = {"grace_s": 1}


class Deaf(Control):
    def refresh(self) -> bool:
        applied = super().refresh()
        self.stop = self.stop and self.gpu_duty != 0.0
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Deaf()


if __name__ == "__main__":
    sys.exit(Runner().main())
