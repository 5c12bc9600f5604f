"""Breaks the duty in a process that has left its session, and outlives the runner if it may."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn, burn

BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true", "duty.follows"}


class Runner(StandIn):
    def phase(self) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                self.detached()
            os._exit(0)
        os.wait()
        super().phase()

    def detached(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            burn(0.05)
        os._exit(0)


if __name__ == "__main__":
    sys.exit(Runner().main())
