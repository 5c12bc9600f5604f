"""Breaks a pause: it looks for a stop and for nothing else."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn, burn

BREAKS = {"pause.held"}
PLAN = {"duty_specs": None, "golden": {"units": 250, "unit_s": 0.01}}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        for _ in range(payload["units"]):
            self.ctl.check()
            burn(payload["unit_s"])


if __name__ == "__main__":
    sys.exit(Runner().main())
