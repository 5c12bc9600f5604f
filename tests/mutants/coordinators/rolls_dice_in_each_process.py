"""Breaks purity: every process gives its campaign another name."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.pure"}


class Coordinator(CoordinatorStandIn):
    def op_apply(self, params: dict) -> dict:
        applied = super().op_apply(params)
        applied["effects"][0]["args"]["campaign_id"] = f"c_{os.getpid()}"
        return applied


if __name__ == "__main__":
    sys.exit(Coordinator().main())
