"""Breaks determinism: the result depends on the path it runs in."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"golden.repeat"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def texts(self) -> list[str]:
        return [text.upper() if " " in self.args.workdir else text for text in super().texts()]


if __name__ == "__main__":
    sys.exit(Runner().main())
