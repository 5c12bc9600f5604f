"""Breaks determinism: the result says when it was made."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn

BREAKS = {"golden.digest", "golden.repeat", "retry.result", "pause.result"}
PLAN = {"duty_specs": None, "golden": {"units": 200, "unit_s": 0.01}}


class Runner(StandIn):
    def texts(self) -> list[str]:
        return [f"{time.time_ns()} units"]


if __name__ == "__main__":
    sys.exit(Runner().main())
