"""Breaks the duty on a GPU behind honest units on the CPU: a child of the runner keeps the device busy."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from gpu_stand_in import GpuStandIn
from stand_in import burn

NEEDS = "gpu"
BREAKS = {"duty.measured_share", "duty.burst", "duty.follows"}


class Runner(GpuStandIn):
    device = "cpu"

    def phase(self) -> None:
        if os.fork() == 0:
            self.child()
        super().phase()

    def child(self) -> None:
        gpu = self.client()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            gpu.run(0.02)
        os._exit(0)

    def unit(self, unit_s: float) -> None:
        with self.duty.unit():
            burn(unit_s)


if __name__ == "__main__":
    sys.exit(Runner().main())
