"""Take samples at an even pace and hand them over, until enough were taken or the processes have ended.

The loop behind `sample`; it prints nothing and judges nothing. It never drops what was measured: when the processes
end in the middle of an interval, the shorter interval is handed over too.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum

from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources import Source

LOOK_S = 0.05
"""How often it is asked whether the processes still live."""


class Ending(Enum):
    """Why there are no more samples."""

    ENOUGH = "as many as asked"
    ENDED = "the processes have ended"


def take_samples(
    source: Source,
    living: Callable[[], bool],
    *,
    interval_s: float,
    count: int,
    hand_over: Callable[[Sample], None],
) -> tuple[Ending, int]:
    """Hand over `count` samples (0: as long as `living` says so), `interval_s` apart; give the end and the number.

    Starts the source and always stops it.
    """
    source.start()
    taken = 0
    try:
        due = time.monotonic()
        while not count or taken < count:
            due += interval_s
            alive = _wait(due, living)
            hand_over(source.sample())
            taken += 1
            if not alive:  # and the last one is shorter than asked
                return Ending.ENDED, taken
        return Ending.ENOUGH, taken
    finally:
        source.stop()


def _wait(due: float, living: Callable[[], bool]) -> bool:
    """Wait until then, or until nothing lives any more; say whether something does."""
    while living():
        left = due - time.monotonic()
        if left <= 0:
            return True
        time.sleep(min(left, LOOK_S))
    return False
