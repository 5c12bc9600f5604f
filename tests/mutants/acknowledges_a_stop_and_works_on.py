"""Breaks the end of a stop: it acknowledges in time, and then works as if nothing had been said."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn, burn

BREAKS = {"stop.exit", "duty.stop"}
PLAN = {"grace_s": 1}
ONLY = ["stop"]


class Runner(StandIn):
    def stopped(self) -> int:
        code = super().stopped()
        until = time.monotonic() + 20
        while time.monotonic() < until:
            burn(0.01)
            time.sleep(0.02)
        return code


if __name__ == "__main__":
    sys.exit(Runner().main())
