"""Breaks the rule of nudges: it looks into its control document ten times a second."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading
import time

from stand_in import Control, StandIn

BREAKS = {"duty.nudge"}


class Runner(StandIn):
    def control(self) -> Control:
        ctl = Control()
        threading.Thread(target=self.poll, args=(ctl,), daemon=True).start()
        return ctl

    def poll(self, ctl: Control) -> None:
        while True:
            time.sleep(0.1)
            ctl.refresh()


if __name__ == "__main__":
    sys.exit(Runner().main())
