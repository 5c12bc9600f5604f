"""What a person sees while a job runs: a table that is redrawn on a terminal, lines elsewhere. All of it on stderr.

A line comes when something changed, or when nothing did for 10 s. A stderr that cannot be written to changes nothing
about the job.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence

from oarbank_agent_check import job_view
from oarbank_agent_check.job_view import JobView
from oarbank_agent_check.jobs.live import LiveText

PROGRAM = "oarbank-agent-check"


class Screen:
    """One agent's."""

    def __init__(self) -> None:
        self._live = LiveText()
        self._shown: object = None
        self._shown_at = 0.0

    def show(self, view: JobView) -> None:
        """Show a moment of the job, if it is worth it."""
        self.put(job_view.table(view), [job_view.line(view)], view.change)

    def put(self, table: str, lines: Sequence[str], change: object) -> None:
        """Show a table on a terminal, else lines: when `change` is another than before, or after a while."""
        with contextlib.suppress(OSError):
            if self._live.on:
                if table != self._shown:
                    self._shown = table
                    self._live(table)
                return
            now = time.monotonic()
            if change != self._shown or now - self._shown_at >= job_view.QUIET_S:
                self._shown, self._shown_at = change, now
                for line in lines:
                    _print(line)

    def say(self, text: str) -> None:
        """Say something that stays."""
        with contextlib.suppress(OSError):
            self._live.clear()
            self._shown = None
            _print(f"{PROGRAM}: {text}")

    def close(self) -> None:
        """Take the table away."""
        with contextlib.suppress(OSError):
            self._live.clear()


def _print(text: str) -> None:
    if sys.stderr is not None:  # closed; print would take standard output instead
        print(text, file=sys.stderr, flush=True)
