"""Breaks the stream: a library's chatter stands between the answers."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.clean"}


class Coordinator(CoordinatorStandIn):
    def golden_list(self, params: dict) -> dict:
        os.write(self.stream, b"reading goldens...\n")
        return super().golden_list(params)

    def main(self) -> int:
        self.stream = os.dup(1)
        return super().main()


if __name__ == "__main__":
    sys.exit(Coordinator().main())
