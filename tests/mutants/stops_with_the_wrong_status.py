"""Breaks the end of a stop: acknowledged in time, and then an exit that says it succeeded."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"stop.exit", "duty.stop"}


class Runner(StandIn):
    def stopped(self) -> int:
        super().stopped()
        return 0


if __name__ == "__main__":
    sys.exit(Runner().main())
