"""Breaks determinism: the result depends on how many processors it finds."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"golden.repeat"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def texts(self) -> list[str]:
        texts = super().texts()
        return [text.upper() for text in texts] if len(os.sched_getaffinity(0)) == 1 else texts


if __name__ == "__main__":
    sys.exit(Runner().main())
