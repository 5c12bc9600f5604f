"""Breaks the required verbs: it does not know job.plan."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dataclasses import replace

from coordinator_stand_in import CoordinatorStandIn

from oarbank_sdk import module

BREAKS = {"protocol.verbs"}


class Coordinator(CoordinatorStandIn):
    def main(self) -> int:
        parse = module.parse

        def deaf(line: bytes) -> object:
            call = parse(line)
            return replace(call, method="nothing") if getattr(call, "method", "") == "job.plan" else call

        module.parse = deaf
        return super().main()


if __name__ == "__main__":
    sys.exit(Coordinator().main())
