"""Breaks the doctor: it tells where it was built, not where it runs."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"doctor.platform"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def diagnosis(self) -> dict:
        found = super().diagnosis()
        found["attrs"]["platform"] = "plan9-mips"
        return found


if __name__ == "__main__":
    sys.exit(Runner().main())
