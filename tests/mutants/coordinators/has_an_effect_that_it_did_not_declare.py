"""Breaks its operations: one of the effects is none that its manifest declares."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.effects"}


class Coordinator(CoordinatorStandIn):
    def op_apply(self, params: dict) -> dict:
        applied = super().op_apply(params)
        return {**applied, "effects": [*applied["effects"], {"kind": "jobs.cancel", "args": {}}]}


if __name__ == "__main__":
    sys.exit(Coordinator().main())
