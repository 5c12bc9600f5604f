"""From ticks to shares: what was held, what may have been held unseen, and what would have been taken on a free
machine.

Pure. A tick says how long the busiest thread ran in it. Three bounds come out, because a busy machine bends all of
them: `held` is what the ticks show. `sure` takes away what late readings at the edges may have put into the wrong
window, so only it accuses. `wanted` adds what late ticks may hide and how long the runner waited for a processor, so
only it clears.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from statistics import median

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.evidence import GpuTick, Wait

TICK_S = 0.005
"""The longest planned tick of the kit's measure."""

LATE_S = 2 * TICK_S
"""A longer tick may hide work that moved between threads within it."""

GPU_TICK_S = 0.05
"""How often the GPU counters are read."""

GPU_LATE_S = 2 * GPU_TICK_S
"""A longer interval between two readings of them may have put time into the wrong window."""

BURST_S = 2.0
"""A burst is judged over this much time: the agent's sample period."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """One share of time, three ways."""

    held: float
    sure: float  # at most `held`
    wanted: float  # at least `held`


@dataclass(frozen=True, slots=True)
class Shares:
    """A window's shares and the figures of the measure itself."""

    mean: Bounds
    worst: Bounds | None  # of any BURST_S; None where the ticks cover less
    covered_s: float
    ticks: int
    tick_median_s: float
    tick_worst_s: float
    waited_s: float | None  # for a processor; None: not known


def shares(
    ticks: Sequence[Tick], start: float, end: float, *, total_s: float | None, waits: Sequence[Wait] | None
) -> Shares | None:
    """Return the shares between two moments; None when no tick lies there.

    `total_s` is the processor time of all threads: it bounds what late ticks can hide. Without `waits` the lateness of
    the ticks themselves stands in, since the kit waits for the same processors.
    """
    first = bisect_left(ticks, start, key=_middle)
    past = bisect_left(ticks, end, key=_middle)
    if first >= past:
        return None
    inside = ticks[first:past]
    sums = _Sums(ticks[:past], _spread(ticks[:past], waits, LATE_S), _hidden(inside, total_s))
    return _shares(sums, first, past, inside, _waited(waits, start, end))


def gpu_shares(ticks: Sequence[GpuTick], start: float, end: float, *, waits: Sequence[Wait] | None) -> Shares | None:
    """Return the shares of the GPU between two moments; None when no tick lies there.

    `covered_s` leaves out what could not be read. That may have been anything, so it clears nobody and accuses nobody.
    """
    first = bisect_left(ticks, start, key=_middle)
    past = bisect_left(ticks, end, key=_middle)
    if first >= past:
        return None
    booked = booked_when_run(ticks[:past])
    sums = _GpuSums(booked, ticks[:past], _spread(booked, waits, GPU_LATE_S))
    inside = ticks[first:past]
    found = _shares(sums, first, past, inside, _waited(waits, start, end))
    return replace(found, covered_s=sum(tick.dt_s for tick in inside if tick.gain_s is not None))


def _shares(sums: _Sums, first: int, past: int, inside: Sequence[Tick | GpuTick], waited_s: float | None) -> Shares:
    lengths = [tick.dt_s for tick in inside]
    return Shares(
        mean=sums.bounds(first, past),
        worst=_worst(sums, first, past),
        covered_s=sums.length(first, past),
        ticks=len(inside),
        tick_median_s=median(lengths),
        tick_worst_s=max(lengths),
        waited_s=waited_s,
    )


def _middle(tick: Tick | GpuTick) -> float:
    return tick.t - tick.dt_s / 2


def _waited(waits: Sequence[Wait] | None, start: float, end: float) -> float | None:
    return None if waits is None else sum(wait.wait_s for wait in waits if start < wait.t <= end + wait.dt_s)


def swing_s(ticks: Sequence[Tick], start: float, end: float, rate: float) -> tuple[float, float]:
    """Return by how many seconds work ran ahead of a steady `rate`, and fell behind it, in any stretch at the most.

    Who holds `rate` by units of b seconds, each with its idle, runs ahead by b(1 - rate) and never by more, however
    long the stretch; and falls behind by as much.
    """
    level = lowest = highest = ahead = behind = 0.0
    for tick in ticks:
        if start < _middle(tick) <= end:
            level += tick.gain_s - rate * tick.dt_s
            lowest, highest = min(lowest, level), max(highest, level)
            ahead, behind = max(ahead, level - lowest), max(behind, highest - level)
    return ahead, behind


def booked_when_run(ticks: Sequence[GpuTick]) -> list[Tick]:
    """Move time that does not fit into a tick to the ticks just before it: some drivers book a buffer when it ends.

    What fits nowhere stays where it was booked, and so does what several engines did side by side: sums hold.
    """
    gains = [tick.gain_s or 0.0 for tick in ticks]
    for last, tick in enumerate(ticks):
        over = gains[last] - tick.dt_s
        before = last
        while over > 0.0 and before > 0:
            before -= 1
            moved = min(over, max(0.0, ticks[before].dt_s - gains[before]))
            gains[before] += moved
            gains[last] -= moved
            over -= moved
    return [Tick(tick.t, tick.dt_s, gain) for tick, gain in zip(ticks, gains, strict=True)]


def _hidden(ticks: Sequence[Tick], total_s: float | None) -> float:
    """How much work late ticks can hide at most: what ran in all and was not counted."""
    if total_s is None:
        return float("inf")
    return max(0.0, total_s - sum(tick.gain_s for tick in ticks))


def _spread(ticks: Sequence[Tick], waits: Sequence[Wait] | None, late_s: float) -> list[float]:
    """The wait that falls to each tick: a step's wait, spread evenly over the step."""
    if waits is None:
        return [max(0.0, tick.dt_s - late_s) for tick in ticks]
    spread = [0.0] * len(ticks)
    ends = [tick.t for tick in ticks]
    for wait in waits:
        if wait.wait_s <= 0.0 or wait.dt_s <= 0.0:
            continue
        began = wait.t - wait.dt_s
        for i in range(bisect_left(ends, began), len(ticks)):
            tick = ticks[i]
            if tick.t - tick.dt_s >= wait.t:
                break
            common = min(tick.t, wait.t) - max(tick.t - tick.dt_s, began)
            spread[i] += wait.wait_s * max(common, 0.0) / wait.dt_s
    return spread


class _Sums:
    """Running sums over ticks, so that any stretch of them is a few subtractions."""

    def __init__(self, ticks: Sequence[Tick], waits: Sequence[float], hidden_s: float, late_s: float = LATE_S) -> None:
        self.ticks = ticks
        self._late_s = late_s
        self._hidden_s = hidden_s
        self._lengths = _running(tick.dt_s for tick in ticks)
        self._gains = _running(tick.gain_s for tick in ticks)
        self._late = _running(max(0.0, t.dt_s - t.gain_s) if t.dt_s > late_s else 0.0 for t in ticks)
        self._waits = _running(waits)

    def length(self, first: int, past: int) -> float:
        return self._lengths[past] - self._lengths[first]

    def bounds(self, first: int, past: int) -> Bounds:
        """The bounds over ticks `first` up to `past`, the latter not included."""
        length = self.length(first, past)
        gain = self._gains[past] - self._gains[first]
        late = min(self._late[past] - self._late[first], self._hidden_s)
        wait = self._waits[past] - self._waits[first]
        # The kit may be held up between reading the clocks and taking the time. The tick is long then, and what ran
        # meanwhile counts in the next one; so a late tick before a stretch may have put its work into it.
        edge = sum(max(0.0, self.ticks[i].dt_s - self._late_s) for i in {max(first - 1, 0), first, past - 1})
        return Bounds(gain / length, max(0.0, gain - edge) / length, (gain + late + wait) / length)


class _GpuSums(_Sums):
    """The same for readings of a counter: a late one hides nothing, an absent one may hide all of its time."""

    def __init__(self, booked: Sequence[Tick], ticks: Sequence[GpuTick], waits: Sequence[float]) -> None:
        super().__init__(booked, waits, 0.0, GPU_LATE_S)
        self._below = _running(0.0 if t.low_s is None or t.gain_s is None else t.gain_s - t.low_s for t in ticks)
        self._above = _running(_above(tick) for tick in ticks)

    def bounds(self, first: int, past: int) -> Bounds:
        length = self.length(first, past)
        exact = super().bounds(first, past)
        below = (self._below[past] - self._below[first]) / length
        above = (self._above[past] - self._above[first]) / length
        return Bounds(exact.held, max(0.0, exact.sure - below), exact.wanted + above)


def _above(tick: GpuTick) -> float:
    if tick.gain_s is None:
        return tick.dt_s
    return 0.0 if tick.high_s is None else tick.high_s - tick.gain_s


def _running(values: Iterable[float]) -> list[float]:
    return [0.0, *accumulate(values)]


def _worst(sums: _Sums, first: int, past: int) -> Bounds | None:
    """The largest of each bound over all stretches between two ticks that just cover BURST_S."""
    # A window of exactly two seconds is covered but for parts of its first and last tick.
    length = min(BURST_S, sums.length(first, past))
    if length < BURST_S - 0.1:
        return None
    found: list[Bounds] = []
    upto = first
    for low in range(first, past):
        while upto < past and sums.length(low, upto) < length - 1e-9:
            upto += 1
        if sums.length(low, upto) < length - 1e-9:
            break
        found.append(sums.bounds(low, upto))
    return Bounds(max(b.held for b in found), max(b.sure for b in found), max(b.wanted for b in found))
