"""Breaks a switch and hides it: the first duty stays in force, and reports tell what was asked."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from stand_in import Control, Duty, StandIn

BREAKS = {"duty.switches"}


class First(Control):
    first: float | None = None
    asked: float | None = None

    def refresh(self) -> bool:
        applied = super().refresh()
        if applied and self.gpu_duty:
            self.asked = self.gpu_duty
        if self.gpu_duty:
            self.first = self.gpu_duty = self.first or self.gpu_duty
        return applied


class Claims(Duty):
    def _write(self, event: dict) -> None:
        asked = self._ctl.asked
        if event["data"]["duty"]:
            event = event | {"value": min(event["value"], asked), "data": event["data"] | {"duty": asked}}
        super()._write(event)


class Runner(StandIn):
    def control(self) -> Control:
        return First()

    def governor(self) -> Duty:
        return Claims(self.ctl, events=self.events_path(), device=self.device)


if __name__ == "__main__":
    sys.exit(Runner().main())
