"""Breaks a pause: once held it waits for ever, whatever comes."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn, burn

BREAKS = {"pause.result"}
PLAN = {"duty_specs": None, "golden": {"units": 200, "unit_s": 0.01}, "timeout_s": 8}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        for _ in range(payload["units"]):
            self.ctl.check()
            while self.ctl.pause or self.ctl.paused_s:
                self.ctl.paused_s = 1.0
                time.sleep(0.05)
            burn(payload["unit_s"])


if __name__ == "__main__":
    sys.exit(Runner().main())
