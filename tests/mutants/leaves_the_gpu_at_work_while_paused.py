"""Breaks a pause on a GPU: the runner itself rests, and buffers that it goes on to submit keep the device busy."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from gpu_stand_in import GpuStandIn

NEEDS = "gpu"
BREAKS = {"pause.held"}
PLAN = {"duty_specs": None, "golden": {"units": 20, "unit_s": 0.01}}


class Runner(GpuStandIn):
    def work(self, payload: dict) -> None:
        threading.Thread(target=self.feed, daemon=True).start()
        super().work(payload)

    def feed(self) -> None:
        gpu = self.client()
        for _ in range(60):
            gpu.run(0.1)


if __name__ == "__main__":
    sys.exit(Runner().main())
