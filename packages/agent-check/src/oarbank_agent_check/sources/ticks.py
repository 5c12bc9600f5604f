"""From the gains of threads to ticks: how long one device, for which the CPU stands in, was busy in each.

In a tick counts the largest gain of any single thread: threads in lockstep count once, and work that moves from thread
to thread counts whole. Where threads share a tick because they took turns inside it, which the number of threads found
running at once tells, the turns are added up. Pure: time, chance and readings come in as arguments; `cpu_threads`
owns the thread and the clock.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

from oarbank_agent_check.readings import NS_PER_S, ProcessKey
from oarbank_agent_check.sources.cpu_threads_parse import Gains

SETTLE_NS = 20_000_000
"""How long a tick may still receive time: longer than a step of any clock (4 ms on most Linux kernels, 10 ms on some,
15.6 ms on Windows)."""

WATCH_NS = 50_000_000
"""How long it is asked how many threads run at once, after threads last shared a tick."""

FADING = 0.98
"""How much a look at the running threads still weighs at the next look: half after 34 looks."""

FORGET = 4096
"""How many ticks are forgotten at a time."""

ENOUGH = 5.0
"""The weight of looks below which nothing is concluded from them."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One stretch of time: its end `t` on the monotonic clock, its real length, and how much of it was busy."""

    t: float
    dt_s: float
    gain_s: float


@dataclass(slots=True)
class Crowd:
    """How many threads of the tree run at the same time, on average over recent moments when any ran."""

    looks: float = 0.0
    running: float = 0.0

    def see(self, running: int) -> None:
        """Take in how many threads were running or waiting for a CPU at one moment."""
        if running:
            self.looks = self.looks * FADING + 1
            self.running = self.running * FADING + running

    def size(self) -> float | None:
        """Give the average, 1 or more; None as long as too little was seen."""
        return self.running / self.looks if self.looks >= ENOUGH else None


def busy_ns(gains: Collection[int], length_ns: int, crowd: float | None) -> int:
    """Say how much of a tick was busy, given what each thread gained in it and how many threads run at once.

    Never less than the largest gain. The sum over the crowd is what is left when threads that ran side by side are
    counted once: equal to the largest gain for threads in lockstep, to the sum for threads that took turns.
    """
    if not gains:
        return 0
    largest = max(gains)
    if crowd is None or len(gains) == 1:
        return largest
    return max(largest, min(length_ns, round(sum(gains) / crowd)))


def busy_of_each(
    gains: Mapping[tuple[ProcessKey, int], int], length_ns: int, crowd: float | None
) -> dict[ProcessKey, int]:
    """Say the same for each process alone."""
    if len(gains) == 1:
        [((key, _thread), gain_ns)] = gains.items()
        return {key: gain_ns}
    apart: dict[ProcessKey, list[int]] = {}
    for (key, _thread), gain_ns in gains.items():
        apart.setdefault(key, []).append(gain_ns)
    return {key: busy_ns(own, length_ns, crowd) for key, own in apart.items()}


@dataclass(slots=True)
class _Open:
    """A tick that may still receive time."""

    end_ns: int
    length_ns: int
    gains: dict[tuple[ProcessKey, int], int]

    def busy_ns(self, crowd: float | None) -> int:
        return busy_ns(self.gains.values(), self.length_ns, crowd)


@dataclass(slots=True)
class TickBook:
    """Collects ticks from `start_ns` on, each planned to last at most `longest_ns`; the machine may make one late.

    `keep_ns` bounds the memory: ticks older than that are forgotten.
    """

    start_ns: int
    longest_ns: int = 5_000_000
    keep_ns: int = 600 * NS_PER_S
    crowd: Crowd = field(default_factory=Crowd)
    # Settled ticks as plain numbers, in ns: a meter that runs for hours must not feed the garbage collector.
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _lengths: array[int] = field(default_factory=lambda: array("q"))
    _busy: array[int] = field(default_factory=lambda: array("q"))
    _late: array[int] = field(default_factory=lambda: array("q"))  # also of the ticks still open
    _open: list[_Open] = field(default_factory=list)
    _last_ns: int = -1
    _due_ns: int = -1
    _watch_until_ns: int = -1
    _sampled_ns: int = -1
    _busy_ns: int = 0
    _by_process: dict[ProcessKey, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._last_ns = self._due_ns = self._sampled_ns = self.start_ns

    @property
    def watching(self) -> bool:
        """Say whether the next reading should tell how many threads run at once."""
        return self._last_ns < self._watch_until_ns

    def due_ns(self, chance: float) -> int:
        """Plan when the next tick ends; `chance` is a random number from 0 up to 1.

        Random lengths keep ticks from beating with the kernel's clock step, or with the period of the work.
        """
        self._due_ns = self._last_ns + int(self.longest_ns * (0.7 + 0.25 * chance))
        return self._due_ns

    def add(self, now_ns: int, gains: Gains, running: int | None = None) -> None:
        """End a tick at `now_ns` with what every thread gained in it and, if it was asked, how many threads run now.

        A moment that is not after the last one adds to the last tick.
        """
        if now_ns > self._last_ns or not self._open:
            self._open.append(_Open(now_ns, now_ns - self._last_ns, {}))
            self._late.append(max(0, now_ns - self._due_ns))
            self._last_ns = now_ns
        last = self._open[-1]
        for thread, gain_ns in gains.items():
            if gain_ns <= last.length_ns and thread not in last.gains:
                last.gains[thread] = gain_ns
            else:
                self._spread(thread, gain_ns)
        if len(gains) > 1:
            self._watch_until_ns = now_ns + WATCH_NS
        if running is not None:
            self.crowd.see(running)
        self._settle(now_ns - SETTLE_NS)

    def ticks(self) -> list[Tick]:
        """Give all ticks; those of the last 20 ms may still grow by time that the clock has not shown yet."""
        crowd = self.crowd.size()
        settled = [_tick(*row) for row in zip(self._ends, self._lengths, self._busy, strict=True)]
        return settled + [_tick(tick.end_ns, tick.length_ns, tick.busy_ns(crowd)) for tick in self._open]

    def take(self) -> tuple[int, int, dict[ProcessKey, int]]:
        """Give length, busy time and busy time per process, in ns, since the start or the last call."""
        self._settle(self._last_ns)
        taken = self._last_ns - self._sampled_ns, self._busy_ns, self._by_process
        self._sampled_ns, self._busy_ns, self._by_process = self._last_ns, 0, {}
        return taken

    def lateness_s(self) -> tuple[float, float]:
        """Say by how much ticks missed the moment planned for them: the median and the worst, in seconds."""
        return (median(self._late) / NS_PER_S, max(self._late) / NS_PER_S) if self._late else (0.0, 0.0)

    def _spread(self, thread: tuple[ProcessKey, int], gain_ns: int) -> None:
        """Credit a gain to the last tick, and what does not fit into it to the ticks just before.

        The kernel moves a running thread's clock in steps. A thread cannot run for longer than a tick lasts, so the
        excess was run earlier, where the clock had not shown it. What fits nowhere stays in the last tick: sums hold.
        """
        left_ns = gain_ns
        for tick in reversed(self._open):
            has_ns = tick.gains.get(thread, 0)
            fits_ns = min(left_ns, max(0, tick.length_ns - has_ns))
            if fits_ns:
                tick.gains[thread] = has_ns + fits_ns
                left_ns -= fits_ns
            if not left_ns:
                return
        last = self._open[-1]
        last.gains[thread] = last.gains.get(thread, 0) + left_ns

    def _settle(self, until_ns: int) -> None:
        crowd = self.crowd.size()
        done = 0
        for tick in self._open:
            if tick.end_ns > until_ns:
                break
            done += 1
            self._write(tick, crowd)
        if done:
            del self._open[:done]
            self._forget(self._last_ns - self.keep_ns)

    def _write(self, tick: _Open, crowd: float | None) -> None:
        busy = tick.busy_ns(crowd)
        self._ends.append(tick.end_ns)
        self._lengths.append(tick.length_ns)
        self._busy.append(busy)
        self._busy_ns += busy
        for key, own_ns in busy_of_each(tick.gains, tick.length_ns, crowd).items():
            self._by_process[key] = self._by_process.get(key, 0) + own_ns

    def _forget(self, before_ns: int) -> None:
        # In blocks, since taking from the front of an array moves all the rest.
        if len(self._ends) > FORGET and self._ends[FORGET] < before_ns:
            for row in (self._ends, self._lengths, self._busy, self._late):
                del row[:FORGET]


def busy_share(ticks: Iterable[Tick]) -> float | None:
    """Give busy time over real time of some ticks; None when they cover no time."""
    listed = list(ticks)
    length = sum(tick.dt_s for tick in listed)
    return sum(tick.gain_s for tick in listed) / length if length > 0 else None


def _tick(end_ns: int, length_ns: int, busy_ns: int) -> Tick:
    return Tick(end_ns / NS_PER_S, length_ns / NS_PER_S, busy_ns / NS_PER_S)
