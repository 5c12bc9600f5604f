"""How a watched job looks: its shares as a line of marks, its newest sample, and what the check makes of it.

Decides words, digits and marks. It watches only: a strike is what the agent would have held against the job, and
nothing is paused here. An unknown is a question mark, never a low mark. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oarbank_agent_check import check
from oarbank_agent_check.inputs import SampleSeen
from oarbank_agent_check.readings import Sample

BLOCKS, PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*%#"
UNKNOWN = "?"
KEPT = 60
"""How many samples the line of marks shows: two minutes."""


@dataclass(frozen=True, slots=True)
class Watching:
    """What was seen so far; `Watching(duty)` is the start. Without a duty nothing is judged."""

    duty: float | None = None
    shares: tuple[float | None, ...] = ()
    memory: check.Watch = field(default_factory=check.Watch)
    judged: int = 0
    struck: bool = False
    """A strike came from samples that could all be read."""
    struck_now: bool = False  # by the newest sample
    unread: int = 0


def hear(watching: Watching, sample: Sample) -> tuple[Watching, str | None]:
    """Take a sample in; give the line that a strike is worth, or None."""
    after = replace(
        watching,
        shares=(*watching.shares, sample.share)[-KEPT:],
        unread=watching.unread + (sample.share is None),
        judged=watching.judged + 1,
        struck_now=False,
    )
    if watching.duty is None:
        return after, None
    seen = SampleSeen(sample.t, "", sample.share, low=sample.low, high=sample.high)
    judged, strike = check.judge(watching.memory, seen, watching.duty)
    if not strike:
        return replace(after, memory=judged), None
    known = all(one.share is not None for one in strike)
    after = replace(after, memory=judged, struck=watching.struck or known, struck_now=True)
    return after, _strike_line(judged, strike)


def _strike_line(watch: check.Watch, strike: Sequence[SampleSeen]) -> str:
    shares = ", ".join("unknown" if one.share is None else f"{one.share:.3f}" for one in strike)
    stops = check.consequence(watch, pausable=True) == "stop"
    outcome = "stop it" if stops else f"pause it for {check.PAUSE_S:.0f} s"
    return f"strike {len(watch.strikes)} of {check.STRIKES} within an hour ({shares}): the agent would {outcome}."


def spark(shares: Sequence[float | None], marks: str = BLOCKS) -> str:
    """Give one mark a sample, from 0 to 1 or to the largest share above it."""
    top = max([1.0, *(share for share in shares if share is not None)])
    last = len(marks) - 1
    return "".join(UNKNOWN if share is None else marks[round(share / top * last)] for share in shares)


def check_words(watching: Watching) -> str:
    """Say how the job stands with the check."""
    if watching.duty is None:
        return "no duty to judge by"
    if watching.judged < 2:
        return "baseline, not judged"
    strikes = f"{len(watching.memory.strikes)} of {check.STRIKES} strikes"
    over = len(watching.memory.over)
    if watching.struck_now:
        return f"a strike just now, {strikes}"
    return f"{f'over {over} of {check.IN_A_ROW} in a row' if over else 'within its duty'}, {strikes}"


def region(watching: Watching, sample: Sample, marks: str = BLOCKS) -> str:
    """Give the lines of the live region."""
    duty = "" if watching.duty is None else f"  duty {watching.duty:.3f}, limit {watching.duty + check.MARGIN:.3f}"
    share = "unknown" if sample.share is None else f"{sample.share:.3f}"
    if sample.low is not None and sample.high is not None:
        share += f" ({sample.low:.3f} to {sample.high:.3f})"
    top = max([1.0, *(one for one in watching.shares if one is not None)])
    reasons = [f"unknown: {process.reason}" for process in sample.unknown[:1]]
    return "\n".join(
        [
            f"share {share}{duty}  {sample.source}, {len(sample.pids)} process{'' if len(sample.pids) == 1 else 'es'}",
            f"{spark(watching.shares, marks)}  0 to {top:.2f}",
            f"check: {check_words(watching)}",
            *reasons,
        ]
    )
