"""Breaks a throttle: once it has been told threads 1 it keeps to one for good."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import subprocess
import time

from stand_in import StandIn

BREAKS = {"throttle.lifted"}
PLAN = {
    "duty_specs": None,
    "capabilities": ["cooperative_throttle", "progress_events"],
    "golden": {"units": 800, "unit_s": 0.01},
}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        children = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            for _ in range(payload["units"]):
                self.ctl.safe_point()
                if self.ctl.threads == 1 and len(children) > 1:
                    gone = children.pop()
                    gone.kill()
                    gone.wait()
                time.sleep(payload["unit_s"])
        finally:
            for child in children:
                child.kill()
                child.wait()


if __name__ == "__main__":
    sys.exit(Runner().main())
