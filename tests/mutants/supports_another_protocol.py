"""Breaks the doctor: it speaks a runner protocol that nobody here does."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"doctor.protocol"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def diagnosis(self) -> dict:
        return {**super().diagnosis(), "runner_protocol": {"supported": [2]}}


if __name__ == "__main__":
    sys.exit(Runner().main())
