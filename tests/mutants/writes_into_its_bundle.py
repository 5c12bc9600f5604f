"""Breaks where a runner may write: it keeps a cache beside its own program."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"writes.inside"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cache.bin"), "wb") as file:
            file.write(b"kept for the next time")
        super().work(payload)


if __name__ == "__main__":
    sys.exit(Runner().main())
