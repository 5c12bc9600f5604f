"""Breaks the duty itself: units run back to back, and nobody reports."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn, burn

BREAKS = {"duty.reports", "duty.measured_share", "duty.burst", "duty.follows"}


class Runner(StandIn):
    def unit(self, unit_s: float) -> None:
        burn(unit_s)
        time.sleep(0)


if __name__ == "__main__":
    sys.exit(Runner().main())
