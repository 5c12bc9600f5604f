"""Breaks purity: each answer says how often it was asked."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.pure"}


class Coordinator(CoordinatorStandIn):
    asked = 0

    def params_check(self, params: dict) -> dict:
        self.asked += 1
        return {**super().params_check(params), "normalized_params": {"asked": self.asked}}


if __name__ == "__main__":
    sys.exit(Coordinator().main())
