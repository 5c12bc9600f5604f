"""Breaks the duty where its reports cannot see it: another thread never rests."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import StandIn, burn

BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true", "duty.follows"}


class Runner(StandIn):
    def phase(self) -> None:
        threading.Thread(target=burn, args=(3600.0,), daemon=True).start()
        super().phase()


if __name__ == "__main__":
    sys.exit(Runner().main())
