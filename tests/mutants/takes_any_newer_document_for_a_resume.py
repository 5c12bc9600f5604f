"""Breaks a pause: a newer document that pauses still makes it go on."""

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
        released = 0
        for _ in range(payload["units"]):
            self.ctl.check()
            while self.ctl.pause and self.ctl.seq > released:
                held = self.ctl.seq
                while self.ctl.seq == held:
                    self.ctl.check()
                    time.sleep(0.01)
                released = self.ctl.seq
            burn(payload["unit_s"])


if __name__ == "__main__":
    sys.exit(Runner().main())
