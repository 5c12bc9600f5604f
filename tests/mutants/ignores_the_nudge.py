"""Breaks every rule of a duty: it reads its control document once, before anything stands in it."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import signal

from stand_in import Control, StandIn

BREAKS = {
    "duty.reports", "duty.reported_share", "duty.measured_share", "duty.burst", "duty.follows", "duty.stop",
}  # fmt: skip
PLAN = {"grace_s": 1}


class Runner(StandIn):
    def control(self) -> Control:
        ctl = Control()
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        return ctl


if __name__ == "__main__":
    sys.exit(Runner().main())
