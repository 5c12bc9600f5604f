"""Breaks the duty in a pool whose threads take turns, so that none of them works for more than a third of the time."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import StandIn, burn

BREAKS = {"duty.measured_share", "duty.burst", "duty.reports_true", "duty.follows"}


class Runner(StandIn):
    def phase(self) -> None:
        self.turns = [threading.Semaphore(0) for _ in range(3)]
        for place in range(3):
            threading.Thread(target=self.rotate, args=(place,), daemon=True).start()
        self.turns[0].release()
        super().phase()

    def rotate(self, place: int) -> None:
        while True:
            self.turns[place].acquire()
            burn(0.002)
            self.turns[(place + 1) % 3].release()


if __name__ == "__main__":
    sys.exit(Runner().main())
