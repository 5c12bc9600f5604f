"""Tell what a guard does: to a person's terminal, to a page, to a program that reads along, and to the journal.

It passes on what others decided and measured. A page that cannot be written is said once and changes nothing else;
a journal that cannot be written ends the guard, as the law wants it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from oarbank_agent_check import guard_page, guard_view
from oarbank_agent_check.agent_clock import AgentClock
from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.commands.words import write_lines
from oarbank_agent_check.guard_view import GuardView
from oarbank_agent_check.history import History
from oarbank_agent_check.law import Journal
from oarbank_agent_check.screen import Screen
from oarbank_sdk.control import replace_text

PAGE_S = 3.0
"""Seconds between two writings of the page."""


class Story:
    """One guard's, from `begin` on: what other runs did is in their journal, and on no page."""

    def __init__(self, journal: Journal, screen: Screen, *, html: str | None, as_json: bool) -> None:
        self._wall: Callable[[float], float] = float
        self._earlier: str | None = None
        self._journal = journal
        self._screen = screen
        self._html = None if html is None else Path(html)
        self._json = as_json
        self._history = History()
        self._view: GuardView | None = None
        self._page_at = 0.0
        self._json_at = 0.0
        self._page_fault: str | None = None

    def begin(self, clock: AgentClock, earlier: str | None) -> None:
        """Let the page's time begin; `earlier` is the journal in which runs before this one are told."""
        now = clock.now()
        self._wall, self._earlier, self._history = clock.wall, earlier, History(first=now, last=now)

    def write(self, lines: Sequence[str]) -> None:
        """Take lines of the journal."""
        self._journal(lines)
        for line in lines:
            self._history.feed(json.loads(line))

    def say(self, text: str) -> None:
        """Say something that stays."""
        self._screen.say(text)
        if self._json:
            write_lines([json.dumps({"kind": "said", "t": time.time(), "text": text})])

    def tell(self, view: GuardView) -> None:
        """Take a moment of the machine."""
        self._view = view
        now = time.monotonic()
        if self._json and now >= self._json_at:
            self._json_at = now + SAMPLE_S
            write_lines([json.dumps(guard_view.document(view), allow_nan=False)])
        if self._html is not None and now >= self._page_at:
            self._page_at = now + PAGE_S
            self._write_page(over=False)

    def close(self) -> None:
        """Write the page for the last time."""
        if self._html is not None:
            self._write_page(over=True)

    def end(self, code: int) -> None:
        """Say how it ended."""
        if self._json:
            write_lines([json.dumps({"kind": "end", "t": time.time(), "exit": code})])

    def _write_page(self, *, over: bool) -> None:
        assert self._html is not None
        if self._view is None:
            return
        page = guard_page.page(
            self._view,
            self._history,
            lambda t: _time(self._wall(t)),
            now=_time(self._view.t),
            over=over,
            earlier=self._earlier,
        )
        try:
            replace_text(self._html, page)
        except OSError as exc:
            why = exc.strerror or str(exc)
            if why != self._page_fault:
                self._page_fault = why
                self._screen.say(f"--html {self._html}: the page must be written; {why}. Free some space.")


def _time(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))
