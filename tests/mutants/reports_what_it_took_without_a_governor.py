"""Breaks the duty and says so: honest reports of units that run back to back."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json
import time

from stand_in import StandIn, burn

BREAKS = {"duty.reported_share", "duty.measured_share", "duty.burst", "duty.follows"}


class Runner(StandIn):
    began = busy = 0.0

    def unit(self, unit_s: float) -> None:
        asked = self.ctl.gpu_duty
        if asked is None:
            self.began, self.busy = time.monotonic(), 0.0
        before = time.monotonic()
        burn(unit_s)
        now = time.monotonic()
        self.busy += now - before
        if asked is not None and now - self.began >= 2.0:
            self.report(asked, now - self.began)
            self.began, self.busy = now, 0.0

    def report(self, asked: float, window_s: float) -> None:
        share = min(self.busy / window_s, 1.0)
        data = {"duty": asked, "device": "cpu", "window_s": window_s}
        event = {"t": time.time(), "kind": "metric", "name": "gpu_duty", "value": share, "data": data}
        with open(self.args.events, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    sys.exit(Runner().main())
