"""Breaks the doctor: something is wrong, and it does not say what."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"doctor.health"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def diagnosis(self) -> dict:
        return {**super().diagnosis(), "health": "unhealthy"}


if __name__ == "__main__":
    sys.exit(Runner().main())
