"""Breaks the refusals: it agrees to a version of the protocol that it does not speak."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dataclasses import replace

from coordinator_stand_in import CoordinatorStandIn

from oarbank_sdk import module

BREAKS = {"protocol.refuses"}


class Coordinator(CoordinatorStandIn):
    def main(self) -> int:
        parse = module.parse

        def eager(line: bytes) -> object:
            call = parse(line)
            if getattr(call, "method", "") == "initialize" and call.params["protocol_versions"] == [99]:
                return replace(call, method="nobody.asked")
            return call

        module.parse = eager
        return super().main()


if __name__ == "__main__":
    sys.exit(Coordinator().main())
