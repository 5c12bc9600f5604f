"""Breaks the measure: its task is over before it can be measured."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"duty.runs"}
PLAN = {"duty_specs": [{"name": "held", "duty": 0.3, "window_s": 2, "payload": {"units": 10, "unit_s": 0.01}}]}

if __name__ == "__main__":
    sys.exit(StandIn().main())
