"""Breaks a secret: what it was given for itself alone stands in its stderr."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import json

from stand_in import StandIn

BREAKS = {"secrets.kept"}
PLAN = {"duty_specs": None, "secrets": ["token"]}


class Runner(StandIn):
    def work(self, payload: dict) -> None:
        with open(os.environ["OARBANK_SECRETS_FILE"], encoding="utf-8") as file:
            print("signing in with", json.load(file)["token"], file=sys.stderr)
        super().work(payload)


if __name__ == "__main__":
    sys.exit(Runner().main())
