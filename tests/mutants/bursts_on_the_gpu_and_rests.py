"""Breaks the burst rule alone on a GPU: one buffer is long, and the mean over the window is right."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json
import time

from gpu_stand_in import GpuStandIn
from stand_in import Duty

NEEDS = "gpu"
BREAKS = {"duty.burst"}
PLAN = {"duty_specs": [{"name": "held", "duty": 0.3, "window_s": 3, "payload": {"units": 1, "unit_s": 0.01}}]}


class Runner(GpuStandIn):
    def work(self, payload: dict) -> None:
        if payload["units"] != 1:
            super().work(payload)
            return
        while self.ctl.gpu_duty is None:
            self.ctl.wait(0.1)
        began = time.monotonic()
        self.rest(began + 1.9)
        self.gpu.run(1.1)  # of 3 s less than 0.4, of 2 s more than 0.45
        self.rest(began + 4.1)
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
        data = {"duty": self.ctl.gpu_duty, "device": "gpu"}
        share = self.ctl.gpu_duty or 0.0
        event = {"t": time.time(), "kind": "metric", "name": "gpu_duty", "value": share, "data": data}
        with open(self.args.events, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    def governor(self) -> Duty:
        return Duty(self.ctl, device=self.device)


if __name__ == "__main__":
    sys.exit(Runner().main())
