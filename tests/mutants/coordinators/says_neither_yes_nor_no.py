"""Breaks params.check: its answer leaves open whether the params hold."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.params"}


class Coordinator(CoordinatorStandIn):
    def params_check(self, params: dict) -> dict:
        return {"normalized_params": params.get("params", {})}


if __name__ == "__main__":
    sys.exit(Coordinator().main())
