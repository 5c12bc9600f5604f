"""Breaks the reports: they name a duty that nobody asked for, with the right share."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading
import time

from stand_in import StandIn

BREAKS = {"duty.reports"}


class Runner(StandIn):
    def events_path(self) -> str | None:
        """Write to a file beside, and copy every line with another duty in it."""
        beside = self.args.events + ".own"
        threading.Thread(target=self.copy, args=(beside,), daemon=True).start()
        return beside

    def copy(self, beside: str) -> None:
        while not os.path.exists(beside):
            time.sleep(0.02)
        with open(beside, encoding="utf-8") as source, open(self.args.events, "a", encoding="utf-8") as target:
            while True:
                for line in source:
                    target.write(line.replace('"duty": 0.3', '"duty": 0.5').replace('"duty":0.3', '"duty":0.5'))
                    target.flush()
                time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(Runner().main())
