"""Breaks its end: told to shut down it stays."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import time

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.ends"}


class Coordinator(CoordinatorStandIn):
    def main(self) -> int:
        code = super().main()
        time.sleep(60)
        return code


if __name__ == "__main__":
    sys.exit(Coordinator().main())
