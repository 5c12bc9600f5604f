"""Breaks the duty with two governors: each thread holds the duty, and together they hold it twice."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading
import time

from stand_in import Duty, StandIn, burn

BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true"}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        threading.Thread(target=self.second, args=(payload["unit_s"],), daemon=True).start()
        super().work(payload)

    def second(self, unit_s: float) -> None:
        duty = self.governor()
        while True:
            self.held(duty, unit_s)

    def unit(self, unit_s: float) -> None:
        self.held(self.duty, unit_s)

    def held(self, duty: Duty, unit_s: float) -> None:
        with duty.unit() as unit:
            before = time.thread_time()
            burn(unit_s)
            unit.busy(time.thread_time() - before)  # two threads wait for each other, which is no work


if __name__ == "__main__":
    sys.exit(Runner().main())
