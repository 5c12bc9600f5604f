"""How a sweep looks to a person: what is going on, each level's verdict, and the end.

Decides words and digits. No harm is shown without the share that did it. Pure.
"""

from __future__ import annotations

from oarbank_agent_check import windows
from oarbank_agent_check.certify import Certifier, LevelTest
from oarbank_agent_check.job_view import clock
from oarbank_agent_check.windows import Pair

WORDS = {
    "pass": "passes",
    "harms": "harms more",
    "close": "too close to the target",
    "undecided": "undecided",
    "void": "nothing was measured",
}
HELD_LITTLE = 0.8
"""A level of which less was truly held is told so beside its verdict."""


def live(found: Certifier, elapsed_s: float) -> str:
    """Say what is going on, in one line."""
    test = found.now
    return (
        f"{clock(elapsed_s)}  level {test.level:.3f}  pairs {len(test.counted)}  harm {_percent(test.harm())}"
        f"  target {found.rules.target:.1%}  held {_share(test.held())}  certified {_share(found.level)}"
    )


def pair_line(pair: Pair) -> str | None:
    """Say why a pair does not count; None: it does."""
    why = windows.fault(pair)
    return None if why is None else f"level {pair.level:.3f}: a pair of windows does not count: {why}"


def verdict_line(test: LevelTest) -> str:
    """Say what came of a level."""
    low, high = test.interval()
    between = f" ({_percent(low)} to {_percent(high)})"
    held = test.held()
    little = ""
    if held is not None and held < HELD_LITTLE * test.level:
        little = ", less than asked: its harm was seen at this share and not at more"
    why = "" if test.why is None else f"; {test.why}"
    return (
        f"level {test.level:.3f}: {WORDS[test.verdict]}, harm {_percent(test.harm())}{between}"
        f" in {len(test.counted)} pairs, held {_share(held)}{little}{why}"
    )


def end_line(found: Certifier) -> str:
    """Say what is certified, or why nothing is."""
    if found.level is None:
        return f"nothing is certified: {found.why or 'no level passed'}"
    further = "" if found.why is None else f"; not certified further up: {found.why}"
    return f"certified {found.level:.3f} of the time, at a target of {found.rules.target:.1%}{further}"


def _percent(harm: float | None) -> str:
    return "?" if harm is None else f"{harm:.2%}"


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"
