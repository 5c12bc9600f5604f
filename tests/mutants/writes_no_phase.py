"""Breaks the start of the measure: it works and never says so."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"duty.runs"}
PLAN = {"duty_specs": [{"name": "held", "duty": 0.3, "window_s": 2, "payload": {"units": 30, "unit_s": 0.01}}]}


class Runner(StandIn):
    def phase(self) -> None:
        pass


if __name__ == "__main__":
    sys.exit(Runner().main())
