"""What a runner reports of the duty it holds: the newest of its reports, for a person to see.

Pure: bytes of an events file go in, in pieces. A report is shown beside what was measured and decides nothing, because
a runner could report anything.
"""

from __future__ import annotations

from oarbank_sdk.events import DutyReport, ReportError, complete_lines, duty_report, events

LONGEST_LINE = 1 << 20
"""Bytes of an unfinished line that are kept; the start of a longer one is dropped, and so the line is."""


class DutyReports:
    """Reads on from where it was."""

    def __init__(self) -> None:
        self.newest: DutyReport | None = None
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Hear what was appended; a report that cannot be used is skipped."""
        lines, rest = complete_lines(self._rest + data)
        self._rest = rest[-LONGEST_LINE:]
        for event in events(lines):
            try:
                report = duty_report(event)
            except ReportError:
                continue
            self.newest = report or self.newest
