"""What ends a person's command early: one line and an exit status."""

from __future__ import annotations

INTERRUPTED = 130  # as shells report SIGINT


class UsageError(Exception):
    """The one line that says what is wrong, and the exit status."""

    def __init__(self, line: str, status: int = 2) -> None:
        super().__init__(line)
        self.status = status
