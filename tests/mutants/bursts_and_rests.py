"""Breaks the burst rule alone: the mean over the window is right, and two of its seconds are not."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json
import time

from stand_in import Duty, StandIn, burn

BREAKS = {"duty.burst"}
PLAN = {"duty_specs": [{"name": "held", "duty": 0.3, "window_s": 4, "payload": {"units": 1, "unit_s": 0.01}}]}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        if payload["units"] != 1:
            super().work(payload)
            return
        while self.ctl.gpu_duty is None:
            self.ctl.wait(0.1)
        began = time.monotonic()
        self.rest(began + 2.3)
        burn(1.2)  # 1.2 of 4 s are 0.3; 1.2 of 2 s are 0.6
        self.rest(began + 5.1)
        while True:  # and then as it should
            self.ctl.safe_point()
            self.unit(0.01)
            self.report()

    def rest(self, until: float) -> None:
        while time.monotonic() < until:
            self.ctl.wait(0.2)
            self.ctl.safe_point()
            self.report()

    def report(self) -> None:
        """Claim what was asked, without a length that could be compared."""
        data = {"duty": self.ctl.gpu_duty, "device": "cpu"}
        share = self.ctl.gpu_duty or 0.0
        event = {"t": time.time(), "kind": "metric", "name": "gpu_duty", "value": share, "data": data}
        with open(self.args.events, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def governor(self) -> Duty:
        return Duty(self.ctl, device=self.device)


if __name__ == "__main__":
    sys.exit(Runner().main())
