"""Breaks the time of a verb: params.check waits for something that never comes."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.time"}


class Coordinator(CoordinatorStandIn):
    def params_check(self, params: dict) -> dict:
        time.sleep(60)
        return super().params_check(params)


if __name__ == "__main__":
    sys.exit(Coordinator().main())
