"""The honest runner of a GPU: each unit submits one buffer, waits for it, and charges the time the device took.

Runs inside a bundle, beside `stand_in.py` and `gpu_client.py`. Mutants subclass it and break one rule each.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from gpu_client import Client
from stand_in import StandIn


class GpuStandIn(StandIn):
    device = "gpu"

    def phase(self) -> None:
        self.gpu = self.client()
        super().phase()

    def client(self) -> Client:
        return Client(os.environ["FAKE_GPU_SOCKET"])

    def unit(self, unit_s: float) -> None:
        with self.duty.unit() as unit:
            unit.busy(self.gpu.run(unit_s).busy_s)


if __name__ == "__main__":
    sys.exit(GpuStandIn().main())
