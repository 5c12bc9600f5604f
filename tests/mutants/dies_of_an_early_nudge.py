"""Breaks its start: it takes SIGUSR1 for itself before a handler is there, so an early nudge ends it."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import signal
import time

from stand_in import Control, StandIn

BREAKS = {"nudge.harmless"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def control(self) -> Control:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        time.sleep(0.3)
        return super().control()


if __name__ == "__main__":
    sys.exit(Runner().main())
