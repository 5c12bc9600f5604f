"""The reports in a runner's events file, as they come: each with the last moment at which it was not there yet.

Reads on from where it began, whole lines only. Decides nothing.
"""

from __future__ import annotations

import time

from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_sdk import strictjson
from oarbank_sdk.events import DutyReport, ReportError, complete_lines, duty_report, events


class ReportLog:
    """What was reported since it was made."""

    def __init__(self, scratch: Scratch) -> None:
        self.reports: list[DutyReport] = []
        self.absent_wall: list[float] = []  # for each report, the last look that did not find it; Unix seconds
        self.unusable: list[str] = []  # reasons of gpu_duty events that are no report
        self.looked_wall = time.time()
        self._scratch = scratch
        self._offset = scratch.events_size()

    def look(self) -> None:
        """Read what has come since the last look."""
        now = time.time()
        lines, rest = complete_lines(data := self._scratch.events(self._offset))
        self._offset += len(data) - len(rest)
        for line in lines:
            self._take(line)
        self.looked_wall = now

    def _take(self, line: bytes) -> None:
        found = events([line])
        if not found and b'"gpu_duty"' in line:
            self.unusable.append(_no_json(line))
        try:
            for event in found:
                if (report := duty_report(event)) is not None:
                    self.reports.append(report)
                    self.absent_wall.append(self.looked_wall)
        except ReportError as exc:
            self.unusable.append(str(exc))


def _no_json(line: bytes) -> str:
    """Why a line that speaks of gpu_duty is no event; readers skip such a line, and a proof cannot rest on it."""
    try:
        strictjson.loads(line)
    except strictjson.StrictJSONError as exc:
        return f"gpu_duty event: {exc}"
    return "gpu_duty event: must be a JSON object; found another value"
