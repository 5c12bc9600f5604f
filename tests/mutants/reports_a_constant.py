"""Breaks the truth of its reports: they tell of next to nothing, whatever was held."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from stand_in import Duty, StandIn, burn

BREAKS = {"duty.reports_true"}


class Constant(Duty):
    def _write(self, event: dict) -> None:
        super()._write(event | {"value": 0.05})


class Runner(StandIn):
    def governor(self) -> Duty:
        return Constant(self.ctl, events=self.events_path(), device=self.device)

    def unit(self, unit_s: float) -> None:
        with self.duty.unit() as unit:
            before = time.thread_time()
            burn(unit_s)
            unit.busy(time.thread_time() - before)


if __name__ == "__main__":
    sys.exit(Runner().main())
