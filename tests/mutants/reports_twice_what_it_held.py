"""Breaks the reports alone: the mean is held, and they tell of twice as much."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Duty, StandIn

BREAKS = {"duty.reported_share", "duty.switches"}
WARNS = {"duty.reports_seen"}
PLAN = {"duty_specs": [{"name": "held", "duty": 0.45, "window_s": 2, "payload": {"units": 9000, "unit_s": 0.01}}]}


class Twice(Duty):
    def _write(self, event: dict) -> None:
        super()._write(event | {"value": min(2.0 * event["value"], 1.0)})


class Runner(StandIn):
    def governor(self) -> Duty:
        return Twice(self.ctl, events=self.events_path(), device=self.device)


if __name__ == "__main__":
    sys.exit(Runner().main())
