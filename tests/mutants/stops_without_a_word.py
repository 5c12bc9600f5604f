"""Breaks a stop's acknowledgement: it exits 75 and leaves no failure.json."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"stop.acknowledged", "duty.stop"}
WARNS = {"stop.sigterm"}

ONLY = ["stop"]


class Runner(StandIn):
    def stopped(self) -> int:
        return 75


if __name__ == "__main__":
    sys.exit(Runner().main())
