"""Ignores the advice on SIGTERM: it is left to do what it does by itself, and that is to die."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import signal

from stand_in import Control, StandIn

WARNS = {"stop.sigterm"}
PLAN = {"golden": {"units": 60, "unit_s": 0.01}}


class Runner(StandIn):
    def control(self) -> Control:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return super().control()


if __name__ == "__main__":
    sys.exit(Runner().main())
