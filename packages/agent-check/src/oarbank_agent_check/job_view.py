"""How a running job looks to a person: a small table on a terminal, a line elsewhere.

Decides words, digits and which change is worth a line. What is not known is a dash, never a zero. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = "     time    asked  reported  measured  strikes  phase"
NOTHING = "-"
QUIET_S = 10.0
"""Seconds after which a line is due although nothing changed."""


@dataclass(frozen=True, slots=True)
class JobView:
    """One moment of a job."""

    running_s: float
    asked: float | None  # the duty in force; None: none
    paused: bool
    stopping: bool
    reported: float | None  # share, the runner's own word
    measured: float | None  # share of the newest sample that could be read
    unread: bool  # the newest sample could not be read
    strikes: int
    phase: str | None

    @property
    def change(self) -> tuple[object, ...]:
        """What makes a line worth printing when it is another than before."""
        return (self.asked, self.paused, self.stopping, self.measured is None, self.unread, self.strikes, self.phase)


def table(view: JobView) -> str:
    """Return the table, two lines."""
    row = (
        f"{clock(view.running_s):>9}  {_asked(view):>7}  {_share(view.reported):>8}  {_measured(view):>8}"
        f"  {view.strikes:>7}  {view.phase or NOTHING}"
    )
    return f"{HEAD}\n{row}"


def line(view: JobView) -> str:
    """Return the same in one line."""
    return (
        f"{clock(view.running_s)}  asked {_asked(view)}  reported {_share(view.reported)}"
        f"  measured {_measured(view)}  strikes {view.strikes}  phase {view.phase or NOTHING}"
    )


def clock(seconds: float) -> str:
    """Return a length of time as 1:02:03, or 2:03."""
    whole = max(int(seconds), 0)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _asked(view: JobView) -> str:
    if view.stopping:
        return "stop"
    return "pause" if view.paused else _share(view.asked)


def _measured(view: JobView) -> str:
    return "unknown" if view.unread else _share(view.measured)


def _share(share: float | None) -> str:
    return NOTHING if share is None else f"{share:.3f}"
