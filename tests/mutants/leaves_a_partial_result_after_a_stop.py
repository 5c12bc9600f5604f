"""Breaks the answer to a stop: it swallows the stop and leaves what it has by then as if it were the whole result."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn, Stopped

BREAKS = {"stop.result_true"}
PLAN = {"golden": {"units": 80, "unit_s": 0.01}}


class Runner(StandIn):
    done = 0

    def work(self, payload: dict) -> None:
        try:
            super().work(payload)
        except Stopped:
            return

    def unit(self, unit_s: float) -> None:
        super().unit(unit_s)
        self.done += 1

    def texts(self) -> list[str]:
        return [f"{self.done} units"]


if __name__ == "__main__":
    sys.exit(Runner().main())
