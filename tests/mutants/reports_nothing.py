"""Breaks the reports: it holds the duty, and nobody can read that."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import StandIn

BREAKS = {"duty.reports"}


class Runner(StandIn):
    def events_path(self) -> str | None:
        return None


if __name__ == "__main__":
    sys.exit(Runner().main())
