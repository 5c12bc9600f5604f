"""Judge one job's samples against its duty: how many in a row are over, and what a strike leads to.

It decides on what it is given and never measures; what could not be read counts as over, never as idle. The numbers are
the brief's, but for the slack. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from oarbank_agent_check.inputs import SampleSeen

SAMPLE_S = 2.0
"""Seconds between two samples of a job (the brief)."""
MARGIN = 0.1
"""A sample may be so much above the duty (the brief): what a 2 s window over whole units can show above it."""
SLACK = 1e-9
"""A share of exactly duty + 0.1 passes; 0.3 + 0.1 is not 0.4 in binary."""
IN_A_ROW = 3
"""So many samples over the duty, one after the other, are a strike (the brief)."""
PAUSE_S = 60.0
"""A strike pauses a job for a minute (the brief)."""
STRIKES = 3
"""The third strike within `STRIKE_S` stops the job (the brief)."""
STRIKE_S = 3600.0
"""A strike counts for an hour, itself included (the brief: within an hour)."""
BAN_S = 3600.0
"""So long the module of a stopped job gets no duty (the brief: for an hour)."""

Consequence = Literal["pause", "release", "stop"]


@dataclass(frozen=True, slots=True)
class Watch:
    """What is remembered of a job between samples."""

    fresh: bool = True
    """No sample since the start or a resume: the next one is a baseline and judges nothing."""
    most: float | None = None
    """The largest duty in force since the last sample; None: at some moment there was none."""
    over: tuple[SampleSeen, ...] = ()
    """The samples over the duty, in a row up to now."""
    strikes: tuple[float, ...] = ()
    """The moments of the strikes that still count."""


def is_over(sample: SampleSeen, duty: float) -> bool:
    """Say whether a sample is over a duty: its low bound, where its source is coarse, and any that is unreadable."""
    if sample.share is None:
        return True
    return (sample.share if sample.low is None else sample.low) > duty + MARGIN + SLACK


def judge(watch: Watch, sample: SampleSeen, duty: float | None) -> tuple[Watch, tuple[SampleSeen, ...]]:
    """Hear a sample at `duty`, in force now; give the samples that make a strike, or none.

    A sample across a change of duty is held to the larger one; one across a time without a duty judges nothing.
    """
    held_to = watch.most
    if watch.fresh or sample.baseline:
        return replace(watch, fresh=False, most=duty), ()
    if held_to is None or not is_over(sample, held_to):
        if not watch.over and held_to == duty:
            return watch, ()
        return replace(watch, over=(), most=duty), ()
    over = (*watch.over, sample)
    if len(over) < IN_A_ROW:
        return replace(watch, over=over, most=duty), ()
    strikes = (*(t for t in watch.strikes if sample.t - t <= STRIKE_S), sample.t)
    return replace(watch, over=(), most=duty, strikes=strikes), over


def consequence(watch: Watch, *, pausable: bool) -> Consequence:
    """Say what the newest strike leads to. A job that can't be paused is given back at its first one."""
    if not pausable:
        return "release"
    return "stop" if len(watch.strikes) >= STRIKES else "pause"


def duty_changed(watch: Watch, duty: float | None) -> Watch:
    """Another duty is in force: the sample that is under way will be held to the larger."""
    most = None if duty is None or watch.most is None else max(duty, watch.most)
    return watch if most == watch.most else replace(watch, most=most)


def began(watch: Watch, duty: float | None) -> Watch:
    """A start, or a resume: the next sample is a baseline, and samples from before are in no row with it."""
    return Watch(fresh=True, most=duty, strikes=watch.strikes)
