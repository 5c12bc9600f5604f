"""Breaks a pause: its main thread holds, a helper of its own goes on."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading
import time

from stand_in import StandIn, burn

BREAKS = {"pause.held"}
PLAN = {"duty_specs": None, "capabilities": ["cooperative_pause"], "golden": {"units": 200, "unit_s": 0.01}}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        threading.Thread(target=self.help, daemon=True).start()
        super().work(payload)

    def help(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            burn(0.04)
            time.sleep(0.04)


if __name__ == "__main__":
    sys.exit(Runner().main())
