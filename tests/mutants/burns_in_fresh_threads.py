"""Breaks the duty in 80 ms threads that come and go, so that no single one is ever busy for long."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import StandIn, burn

BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true", "duty.follows"}


class Runner(StandIn):
    def phase(self) -> None:
        threading.Thread(target=self.hop, daemon=True).start()
        super().phase()

    def hop(self) -> None:
        while True:
            thread = threading.Thread(target=burn, args=(0.08,), daemon=True)
            thread.start()
            thread.join()


if __name__ == "__main__":
    sys.exit(Runner().main())
