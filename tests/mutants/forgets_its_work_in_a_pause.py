"""Breaks a pause: what it had counted before is lost, and the result shows it."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn, burn

BREAKS = {"pause.result"}
PLAN = {"duty_specs": None, "golden": {"units": 200, "unit_s": 0.01}}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        self.done = 0
        for _ in range(payload["units"]):
            held_s = self.ctl.paused_s
            self.ctl.safe_point()
            self.done = 0 if self.ctl.paused_s > held_s else self.done
            burn(payload["unit_s"])
            self.done += 1

    def texts(self) -> list[str]:
        return [f"{self.done} units"]


if __name__ == "__main__":
    sys.exit(Runner().main())
