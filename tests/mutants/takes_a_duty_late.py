"""Breaks the duty after the settling second: what it was given is in force two and a half seconds later."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import Control, StandIn

BREAKS = {"duty.reports", "duty.reported_share", "duty.measured_share", "duty.burst", "duty.follows"}


class Late(Control):
    def refresh(self) -> bool:
        before = self.gpu_duty
        applied = super().refresh()
        if self.gpu_duty != before:
            later = threading.Timer(2.5, self.take, (self.gpu_duty,))
            later.daemon = True
            later.start()
            self.gpu_duty = before
        return applied

    def take(self, duty: float | None) -> None:
        self.gpu_duty = duty
        self.wake()


class Runner(StandIn):
    def control(self) -> Control:
        return Late()


if __name__ == "__main__":
    sys.exit(Runner().main())
