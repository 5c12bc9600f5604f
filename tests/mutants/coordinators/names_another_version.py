"""Breaks the greeting: it is another version than its manifest says."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from coordinator_stand_in import CoordinatorStandIn

BREAKS = {"protocol.starts"}


class Coordinator(CoordinatorStandIn):
    def main(self) -> int:
        self.manifest["module"]["version"] = "9.9.9"
        return super().main()


if __name__ == "__main__":
    sys.exit(Coordinator().main())
