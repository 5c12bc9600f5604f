"""Breaks a retry: half of a killed attempt stays in the data directory and counts in the next."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"retry.result"}
PLAN = {"duty_specs": None, "golden": {"units": 50, "unit_s": 0.01}}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        self.found = 0
        kept = os.path.join(os.environ["OARBANK_MODULE_DATA"], "progress")
        if os.path.exists(kept):
            self.found = 1
        with open(kept, "w", encoding="utf-8") as file:
            file.write("half")
        super().work(payload)
        os.unlink(kept)

    def texts(self) -> list[str]:
        return [text + "!" * self.found for text in super().texts()]


if __name__ == "__main__":
    sys.exit(Runner().main())
