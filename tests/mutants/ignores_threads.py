"""Breaks a throttle: it works on several processors whatever it is told."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import subprocess
import time

from stand_in import StandIn

BREAKS = {"throttle.threads"}
PLAN = {
    "duty_specs": None,
    "capabilities": ["cooperative_throttle", "progress_events"],
    "golden": {"units": 800, "unit_s": 0.01},
}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        children = [self.child() for _ in range(2)]
        try:
            for _ in range(payload["units"]):
                self.ctl.safe_point()
                time.sleep(payload["unit_s"])
        finally:
            for child in children:
                child.kill()
                child.wait()

    def child(self) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", "while True: pass"])


if __name__ == "__main__":
    sys.exit(Runner().main())
