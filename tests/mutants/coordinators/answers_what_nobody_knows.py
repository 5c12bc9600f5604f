"""Breaks the refusals: a method that the protocol does not have is answered all the same."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from dataclasses import replace

from coordinator_stand_in import CoordinatorStandIn

from oarbank_sdk import module

BREAKS = {"protocol.unknown"}


class Coordinator(CoordinatorStandIn):
    def main(self) -> int:
        parse = module.parse

        def polite(line: bytes) -> object:
            call = parse(line)
            known = {*module.REQUIRED, *module.OPTIONAL, "initialize"}
            foreign = isinstance(call, module.Call) and call.wants_answer and call.method not in known
            return replace(call, method="job.plan") if foreign else call

        module.parse = polite
        return super().main()


if __name__ == "__main__":
    sys.exit(Coordinator().main())
