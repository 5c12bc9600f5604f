"""How long the kit waits and watches, in seconds; the defaults are the protocol's, and tests of tiny modules give less.

Pure values. The bounds of a stop and of a duty are fixed by their contracts and are no options.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, all above 0."""

    doctor_s: float = 120.0
    """How long `doctor --json` may take here (runner protocol); an agent gives it 60 s."""

    settle_s: float = 2.0
    """From the nudge until a pause or `threads` must be in force: safe points are about a second apart."""

    window_s: float = 2.0
    """How long a pause, and each half of a throttle, is watched."""

    shutdown_s: float = 5.0
    """From a shutdown to the coordinator's end (module protocol)."""


USUAL = Limits()
"""The protocol's own."""
