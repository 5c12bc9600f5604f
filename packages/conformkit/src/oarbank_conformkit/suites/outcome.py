"""What a suite hands back: its checks, and what the rest of the plan must know."""

from __future__ import annotations

from dataclasses import dataclass

from oarbank_conformkit.checks import Check
from oarbank_conformkit.evidence import DutySeen


@dataclass(frozen=True, slots=True)
class Outcome:
    """The checks of one step, and what they mean for others.

    `absent` says why no other step can run, `absent_golden` why no other step of the golden can, `duty` what the checks
    of a duty spec rest on.
    """

    checks: list[Check]
    absent: str | None = None
    absent_golden: str | None = None
    duty: DutySeen | None = None
