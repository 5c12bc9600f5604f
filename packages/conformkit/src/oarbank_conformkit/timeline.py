"""What happened over a duty spec's run, on one axis of seconds since the nudge: for a picture, never for a verdict.

Pure. The shares are the judge's own ticks, summed into buckets and into running means of two seconds; where ticks are
missing, or a counter could not be read, there is a gap and never a zero.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.evidence import DutySeen, StopSeen
from oarbank_conformkit.judge.duty import BURST_TOLERANCE, REPORT_WAIT_S, SETTLE_S, limit, measured, used_reports
from oarbank_conformkit.report import DutyRun
from oarbank_conformkit.shares import BURST_S, booked_when_run

BUCKET_S = 0.25
"""How much time one bar of a picture stands for, at least."""

MOST_BUCKETS = 400
"""A longer run gets longer buckets: a picture has only so many columns."""

BEFORE_S = 0.5
"""How much of the time before the nudge is shown."""

AFTER_S = 0.25
"""Room behind the last moment."""

COVERED = 0.95
"""Part of two seconds that ticks must cover for a running mean to be one."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened at once."""

    at_s: float
    says: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """A share over some time."""

    start_s: float
    end_s: float
    share: float


@dataclass(frozen=True, slots=True)
class Told:
    """One report; `judged` says whether its interval counts for the duty of the window."""

    stretch: Stretch
    device: str
    judged: bool


@dataclass(frozen=True, slots=True)
class Series:
    """What the kit measured of one device: bars with gaps, and the mean of the two seconds up to each moment."""

    device: str  # cpu or gpu
    source: str
    bars: tuple[Stretch, ...]
    means: tuple[tuple[float, float], ...]  # (moment, share); only where the two seconds lie in the window


@dataclass(frozen=True, slots=True)
class Timeline:
    """One duty spec's run; moments and stretches count in seconds from the nudge."""

    name: str
    duty: float  # of the window; others may follow, see `asked`
    limit: float
    burst_limit: float
    asked: tuple[Stretch, ...]  # each duty from its nudge to the next one
    start_s: float
    end_s: float
    window: tuple[float, float] | None  # None: it never closed
    moments: tuple[Moment, ...]
    told: tuple[Told, ...]
    series: tuple[Series, ...]
    bucket_s: float


def timeline(run: DutyRun) -> Timeline | None:
    """Return what happened after the nudge; None where there was no nudge."""
    seen = run.seen
    began = _nudged(seen)
    if began is None:
        return None
    window = None if seen.cpu is None else (seen.cpu.start - began, seen.cpu.end - began)
    moments = tuple(_moments(run, began, window))
    told = tuple(_told(seen))
    last_s = max(moment.at_s for moment in moments)
    # A report's time is the runner's word, and an axis that reaches a year ahead shows nothing.
    ends = [one.stretch.end_s for one in told if one.stretch.end_s <= last_s + REPORT_WAIT_S]
    end_s = max([last_s, *ends]) + AFTER_S
    bucket_s = max(BUCKET_S, (end_s + BEFORE_S) / MOST_BUCKETS)
    return Timeline(
        name=run.spec.name,
        duty=run.spec.duty,
        limit=limit(run.spec.duty),
        burst_limit=limit(run.spec.duty, BURST_TOLERANCE),
        asked=tuple(_asked(run, began, end_s)),
        start_s=-BEFORE_S,
        end_s=end_s,
        window=window,
        moments=moments,
        told=told,
        series=tuple(_series(seen, began, window, bucket_s)),
        bucket_s=bucket_s,
    )


def _nudged(seen: DutySeen) -> float | None:
    if seen.nudged is not None or seen.cpu is None:
        return seen.nudged
    return seen.cpu.start - SETTLE_S  # the window opens when the settling second is over


def _asked(run: DutyRun, began: float, end_s: float) -> Iterator[Stretch]:
    starts = [(0.0, run.spec.duty), *((change.nudged - began, change.duty) for change in run.seen.changes)]
    for (start_s, duty), (next_s, _) in zip(starts, [*starts[1:], (end_s, 0.0)], strict=True):
        yield Stretch(start_s, next_s, duty)


def _moments(run: DutyRun, began: float, window: tuple[float, float] | None) -> Iterator[Moment]:
    yield Moment(0.0, f"nudge: duty {run.spec.duty:g}")
    if window is not None:
        yield Moment(window[0], "window opens")
        yield Moment(window[1], "window closes")
    for change in run.seen.changes:
        yield Moment(change.nudged - began, f"nudge: duty {change.duty:g}")
    if run.seen.ended_s is not None:
        yield Moment(run.seen.ended_s, _ended("ended by itself", run.seen.code))
    elif run.seen.left_s is not None and window is not None:
        yield Moment(window[1] + run.seen.left_s, _ended("ended by itself", run.seen.code))
    stop = run.seen.stop
    if stop is not None and stop.nudged is not None:
        yield from _stopped(stop, stop.nudged - began)


def _stopped(stop: StopSeen, at_s: float) -> Iterator[Moment]:
    yield Moment(at_s, "stop")
    if stop.ack_s is not None:
        yield Moment(at_s + stop.ack_s, "acknowledged")
    if stop.exit_s is not None:
        yield Moment(at_s + stop.exit_s, _ended("ended", stop.code))
    else:
        yield Moment(at_s + stop.alive_s, "still there, ended by the kit")


def _ended(words: str, code: int | None) -> str:
    if code is None:
        return words
    return f"{words}, signal {-code}" if code < 0 else f"{words}, exit {code}"


def _told(seen: DutySeen) -> Iterator[Told]:
    judged = used_reports(seen)
    for report in seen.reports:
        end_s = report.t - seen.nudged_wall
        start_s = end_s - (report.window_s or 0.0)
        yield Told(Stretch(start_s, end_s, report.share), report.device, report in judged)


def _series(seen: DutySeen, began: float, window: tuple[float, float] | None, bucket_s: float) -> Iterator[Series]:
    for one in measured(seen, used_reports(seen)):
        ticks, known = _ticks(seen, one.device)
        if ticks:
            sums = _Sums(ticks, known, began)
            yield Series(one.device, one.source, tuple(sums.bars(bucket_s)), tuple(sums.means(bucket_s, window)))


def _ticks(seen: DutySeen, device: str) -> tuple[Sequence[Tick], Sequence[bool]]:
    """The ticks as they are judged, and which of them were read; a later measure holds those of the earlier ones."""
    if device == "gpu":
        gpus = [one for one in (seen.gpu, *(change.gpu for change in seen.changes)) if one is not None]
        read = gpus[-1].ticks if gpus else ()
        return booked_when_run(read), [tick.gain_s is not None for tick in read]
    cpus = [one for one in (seen.cpu, *(change.cpu for change in seen.changes)) if one is not None]
    ticks = cpus[-1].ticks if cpus else ()
    return ticks, [True] * len(ticks)


class _Sums:
    """Gain and covered time up to any moment; within a tick both grow evenly."""

    def __init__(self, ticks: Sequence[Tick], known: Sequence[bool], began: float) -> None:
        self._ends = [tick.t - began for tick in ticks]
        self._lengths = [tick.dt_s for tick in ticks]
        self._gains = [0.0, *accumulate(tick.gain_s for tick in ticks)]
        self._covered = [0.0, *accumulate(tick.dt_s if read else 0.0 for tick, read in zip(ticks, known, strict=True))]

    def bars(self, bucket_s: float) -> Iterator[Stretch]:
        """The mean of each bucket that is covered by half or more, from BEFORE_S before the nudge on."""
        number = -round(BEFORE_S / bucket_s)
        while (start_s := number * bucket_s) < self._ends[-1]:
            end_s = start_s + bucket_s
            share, covered_s = self._mean(start_s, end_s)
            if share is not None and covered_s >= bucket_s / 2:
                yield Stretch(start_s, end_s, share)
            number += 1

    def means(self, step_s: float, window: tuple[float, float] | None) -> Iterator[tuple[float, float]]:
        """The mean of the two seconds up to each step that lie in the window."""
        if window is None:
            return
        at_s = min(window[0] + BURST_S, window[1])
        while at_s <= window[1] + 1e-9:
            share, covered_s = self._mean(at_s - BURST_S, at_s)
            if share is not None and covered_s >= COVERED * BURST_S:
                yield at_s, share
            at_s += step_s

    def _mean(self, start_s: float, end_s: float) -> tuple[float | None, float]:
        gain_a, covered_a = self._upto(start_s)
        gain_b, covered_b = self._upto(end_s)
        covered_s = covered_b - covered_a
        return (None, 0.0) if covered_s <= 1e-9 else ((gain_b - gain_a) / covered_s, covered_s)

    def _upto(self, at_s: float) -> tuple[float, float]:
        i = bisect_right(self._ends, at_s)
        if i == len(self._ends):
            return self._gains[-1], self._covered[-1]
        part = min(max((at_s - (self._ends[i] - self._lengths[i])) / self._lengths[i], 0.0), 1.0)
        gain = self._gains[i] + part * (self._gains[i + 1] - self._gains[i])
        return gain, self._covered[i] + part * (self._covered[i + 1] - self._covered[i])
