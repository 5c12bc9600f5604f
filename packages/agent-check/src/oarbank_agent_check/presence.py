"""Whether a protected program uses the GPU: from who is there, and how busy the GPU's sources saw it.

A program that nobody has measured yet, or that nobody can measure, uses it. One that fell quiet still does for a while,
because a program that loads the next scene is about to draw it. Pure: time and samples come in.
"""

from __future__ import annotations

from dataclasses import dataclass

BUSY = 0.05
"""A share of the GPU's time from which on a program uses it (the public agent's default)."""

QUIET_S = 60.0
"""A program that was busy no longer uses the GPU after so long without a busy sample; one that has ended: at once."""


@dataclass(frozen=True, slots=True)
class Presence:
    """What is known of one program; `Presence()` is the start: it is not there."""

    there: bool = False
    measured: bool = False
    busy_at: float | None = None
    """The last moment it was busy, or could not be measured."""
    now: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it uses the GPU."""
        if not self.there:
            return False
        if not self.measured:
            return True
        return self.busy_at is not None and self.now - self.busy_at < QUIET_S

    def looked(self, t: float, there: bool) -> Presence:
        """Processes of it were found, or none."""
        if not there:
            return Presence(now=t)
        return Presence(True, self.measured, self.busy_at, t)

    def sampled(self, t: float, share: float | None) -> Presence:
        """Its share of the GPU's time over the last sample; None: it could not be read."""
        if not self.there:
            return self
        busy = share is None or share >= BUSY
        return Presence(True, True, t if busy else self.busy_at, t)
