"""Breaks its end: the work is done, and it waits for ever with nothing written."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn

BREAKS = {"golden.exit", "golden.result"}
PLAN = {"duty_specs": None, "timeout_s": 2, "capabilities": []}


class Runner(StandIn):
    def write_result(self) -> None:
        while True:
            self.ctl.safe_point()
            time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(Runner().main())
