"""Breaks a runner spec: the result lists none of the files that it must have."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"spec.result"}
PLAN = {
    "duty_specs": None,
    "fixtures": {
        "runner_specs": [
            {"name": "good", "payload": {"units": 2, "unit_s": 0.01}, "expect": {"artifacts": ["picture"]}}
        ]
    },
}


class Runner(StandIn):
    pass


if __name__ == "__main__":
    sys.exit(Runner().main())
