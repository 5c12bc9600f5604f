"""Breaks the time of its reports: each is right, and stands in the file two seconds later."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import threading

from stand_in import Duty, StandIn

BREAKS = {"duty.reports_timely"}


class Late(Duty):
    def _write(self, event: dict) -> None:
        later = threading.Timer(2.0, super()._write, (event,))
        later.daemon = True
        later.start()


class Runner(StandIn):
    def governor(self) -> Duty:
        return Late(self.ctl, events=self.events_path(), device=self.device)


if __name__ == "__main__":
    sys.exit(Runner().main())
