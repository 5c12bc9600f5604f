"""Whether a protected program uses the GPU: from who is there, and how busy the GPU's sources saw it.

A program that nobody has measured yet, or that nobody can measure, uses it. One that has just been started, or fell
quiet, still does for a while: a program that loads a scene is about to draw it. Pure: time and samples come in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BUSY = 0.05
"""A share of the GPU's time from which on a program uses it (the public agent's default)."""

QUIET_S = 60.0
"""So long after its start or its last busy sample a quiet program still uses the GPU; one that has ended does not."""


@dataclass(frozen=True, slots=True)
class Presence:
    """What is known of one program; `Presence()` is the start: nobody has looked."""

    there: bool = False
    measured: bool = False
    busy_at: float | None = None
    """The last moment it was busy, or was started, or could not be measured."""
    now: float | None = None
    """The last moment it was looked at."""

    @property
    def active(self) -> bool:
        """Whether it uses the GPU."""
        if not self.there or self.now is None:
            return False
        if not self.measured:
            return True
        return self.busy_at is not None and self.now - self.busy_at < QUIET_S

    def looked(self, t: float, there: bool) -> Presence:
        """Processes of it were found, or none."""
        if not there:
            return Presence(now=t)
        started = not self.there and self.now is not None
        return replace(self, there=True, busy_at=t if started else self.busy_at, now=t)

    def sampled(self, t: float, share: float | None) -> Presence:
        """Its share of the GPU's time over the last sample; None: it could not be read."""
        if not self.there:
            return self
        busy = share is None or share >= BUSY
        return replace(self, measured=True, busy_at=t if busy else self.busy_at, now=t)
