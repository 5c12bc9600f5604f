"""Breaks the doctor: it waits for something that never comes."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn

BREAKS = {"doctor.exit"}
PLAN = {"duty_specs": None}
LIMITS = {"doctor_s": 2.0}


class Runner(StandIn):
    def doctor(self) -> int:
        time.sleep(60)
        return 0


if __name__ == "__main__":
    sys.exit(Runner().main())
