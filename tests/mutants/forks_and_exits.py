"""Breaks its own end: a child goes on with the work and the runner exits 0 at once."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"golden.result", "duty.runs"}
PLAN = {"capabilities": ["cooperative_pause", "cooperative_throttle", "progress_events"]}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        if os.fork():
            os._exit(0)
        os.setsid()
        super().work(payload)


if __name__ == "__main__":
    sys.exit(Runner().main())
