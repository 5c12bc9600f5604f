"""Breaks a runner spec: it exits 2 as it must and leaves nobody a word."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"spec.failure"}
PLAN = {
    "duty_specs": None,
    "fixtures": {
        "runner_specs": [{"name": "bad", "payload": {"units": -1}, "expect": {"exit": 2, "reason": "standin/bad_spec"}}]
    },
}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        if payload["units"] < 0:
            sys.exit(2)
        super().work(payload)


if __name__ == "__main__":
    sys.exit(Runner().main())
