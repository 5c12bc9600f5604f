"""Breaks the doctor: megabytes of chatter follow the document."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"doctor.document"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def doctor(self) -> int:
        code = super().doctor()
        for number in range(100_000):
            print("loading tensor", number, "of a model that nobody asked for")
        return code


if __name__ == "__main__":
    sys.exit(Runner().main())
