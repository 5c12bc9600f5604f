"""Breaks the doctor: behind the document it prints another one."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json

from stand_in import StandIn

BREAKS = {"doctor.document"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def doctor(self) -> int:
        code = super().doctor()
        print(json.dumps({"elapsed_s": 0.1}))
        return code


if __name__ == "__main__":
    sys.exit(Runner().main())
