"""Breaks the newest document: the first duty that it was given stays in force."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, StandIn

BREAKS = {"duty.follows", "duty.switches"}


class Older(Control):
    first: float | None = None

    def refresh(self) -> bool:
        applied = super().refresh()
        self.first = self.gpu_duty if self.first is None else self.first
        self.gpu_duty = self.first
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Older()


if __name__ == "__main__":
    sys.exit(Runner().main())
