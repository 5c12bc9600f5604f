"""Breaks the duty on a GPU itself: buffers run back to back, and nobody reports."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from gpu_stand_in import GpuStandIn

NEEDS = "gpu"
BREAKS = {"duty.reports", "duty.measured_share", "duty.burst", "duty.follows"}


class Runner(GpuStandIn):
    def unit(self, unit_s: float) -> None:
        self.gpu.run(unit_s)


if __name__ == "__main__":
    sys.exit(Runner().main())
