"""Breaks the smallest duty: it works out an idle by dividing by the duty, and 0 ends it."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.follows"}


class Divides(Control):
    def refresh(self) -> bool:
        applied = super().refresh()
        if self.gpu_duty is not None:
            self.idle = (1.0 - self.gpu_duty) / self.gpu_duty
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Divides()


if __name__ == "__main__":
    sys.exit(Runner().main())
