"""Breaks where a runner may write: its log is a file of the whole machine."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"writes.inside"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        log = os.path.join("/var/tmp" if os.path.isdir("/var/tmp") else "/tmp", "oarbank-stand-in.log")
        with open(log, "a", encoding="utf-8") as file:
            file.write("started")
            super().work(payload)
        os.unlink(log)


if __name__ == "__main__":
    sys.exit(Runner().main())
