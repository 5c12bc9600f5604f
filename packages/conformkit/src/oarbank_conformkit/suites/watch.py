"""Wait beside a running runner and keep reading: the measure, the reports, its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from oarbank_agent_check.jobs.runner_process import RunnerProcess
from oarbank_conformkit.measure import Measure
from oarbank_conformkit.suites.report_log import ReportLog
from oarbank_conformkit.workdir import Scratch

STEP_S = 0.05
"""How often the kit looks up; an end of the runner wakes it at once."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One runner and what is read of it."""

    scratch: Scratch
    runner: RunnerProcess
    measure: Measure
    log: ReportLog

    def until(self, moment: float, *, enough: Callable[[], bool] = lambda: False) -> bool:
        """Wait for a moment, or until it is enough; False when the runner ended first."""
        while not enough() and (now := time.monotonic()) < moment:
            if self.runner.wait(min(moment - now, STEP_S)) is not None:
                self.log.look()
                return False
            self.measure.step()
            self.log.look()
        return True
