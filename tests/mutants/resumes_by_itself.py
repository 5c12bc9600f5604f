"""Breaks a pause: it holds, and goes on after a while without being told."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import StandIn, burn

BREAKS = {"pause.kept"}
PLAN = {"duty_specs": None, "golden": {"units": 200, "unit_s": 0.01}}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        patient = True
        for _ in range(payload["units"]):
            self.ctl.check()
            if self.ctl.pause and patient:
                time.sleep(0.8)
                patient = False
            burn(payload["unit_s"])


if __name__ == "__main__":
    sys.exit(Runner().main())
