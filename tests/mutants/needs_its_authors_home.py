"""Breaks in any other environment: it reads a setting from its author's home."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"golden.exit", "golden.result"}
PLAN = {"duty_specs": None, "capabilities": []}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        with open(os.path.join(os.environ["HOME"], ".stand-in.toml"), encoding="utf-8") as file:
            file.read()


if __name__ == "__main__":
    sys.exit(Runner().main())
