"""Breaks the interval of a report: it goes by the clock alone, and names the duty of its end."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json
import threading
import time

from stand_in import StandIn

BREAKS = {"duty.reports_apart"}


class Runner(StandIn):
    def events_path(self) -> str | None:
        threading.Thread(target=self.tell, daemon=True).start()
        return None

    def tell(self) -> None:
        while self.ctl.gpu_duty is None:
            time.sleep(0.01)
        length_s = 1.5  # and 2 s from then on: the third one holds the change that comes after 4 s
        while True:
            began, busy_s = time.monotonic(), self.duty.busy_s
            time.sleep(length_s)
            self.report(time.monotonic() - began, self.duty.busy_s - busy_s)
            length_s = 2.0

    def report(self, window_s: float, busy_s: float) -> None:
        data = {"duty": self.ctl.gpu_duty, "device": "cpu", "window_s": window_s}
        event = {"t": time.time(), "kind": "metric", "name": "gpu_duty", "value": busy_s / window_s, "data": data}
        with open(self.args.events, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


if __name__ == "__main__":
    sys.exit(Runner().main())
