"""Breaks its goldens: what is built is not the task of the golden's file."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.goldens"}


class Coordinator(CoordinatorStandIn):
    def stages(self, job: dict) -> list:
        return [{**super().stages(job)[0], "payload": {**job["key_inputs"], "units": 7}}]


if __name__ == "__main__":
    sys.exit(Coordinator().main())
