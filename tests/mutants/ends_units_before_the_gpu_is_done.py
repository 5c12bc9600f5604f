"""Breaks the duty on a GPU: a unit submits and does not wait, so what it held is a fraction of what the device does."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from gpu_stand_in import GpuStandIn

NEEDS = "gpu"
BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true", "duty.follows"}


class Runner(GpuStandIn):
    def unit(self, unit_s: float) -> None:
        with self.duty.unit():
            self.gpu.submit(unit_s)
        time.sleep(unit_s / 2)  # the host's work for the next one


if __name__ == "__main__":
    sys.exit(Runner().main())
