"""Breaks its own schema: the digest is right, and another field of the payload is no number any more."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"golden.payload"}
PLAN = {"duty_specs": None}


class Runner(StandIn):
    def more(self) -> dict:
        return {"units": str(self.spec["payload"]["units"])}


if __name__ == "__main__":
    sys.exit(Runner().main())
