"""Breaks a runner spec: a payload that can never succeed ends as if it had."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"spec.exit"}
PLAN = {
    "duty_specs": None,
    "fixtures": {"runner_specs": [{"name": "bad", "payload": {"units": -1}, "expect": {"exit": 2}}]},
}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        super().work({"units": max(payload["units"], 0), "unit_s": 0.01})


if __name__ == "__main__":
    sys.exit(Runner().main())
