"""Breaks every stop: it reads its duty and never looks at a stop."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import Control, StandIn

BREAKS = {"stop.acknowledged", "stop.exit", "duty.stop"}
PLAN = {"grace_s": 1}


class Deaf(Control):
    told = False

    def refresh(self) -> bool:
        applied = super().refresh()
        self.told = self.told or self.stop
        self.stop = False
        return applied


class Runner(StandIn):
    def control(self) -> Control:
        return Deaf()

    def work(self, payload: dict) -> None:
        """Work, and where a stop came go on for long enough to be caught in a short golden too."""
        super().work(payload)
        until = time.monotonic() + 30
        while self.ctl.told and time.monotonic() < until:
            self.unit(0.01)
            time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(Runner().main())
