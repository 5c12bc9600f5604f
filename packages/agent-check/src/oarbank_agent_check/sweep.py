"""Certify a level: windows with the work paused and running, in an order that coins choose, until `certify` has enough.

The shell around `certify`: it starts and steers the work, waits, reads the program's counter and what the work held,
and hands pairs of windows over. Which level is next and what a pair is worth is decided there.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from oarbank_agent_check.certify import Certifier
from oarbank_agent_check.progress import Progress
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sweep_work import WorkEnded
from oarbank_agent_check.windows import Pair, Window

MOST_ENDS = 3
"""So many jobs in a row that end before a pair of windows is whole: none will last."""

Kind = Literal["paused", "running"]


class Interrupted(Exception):
    """The owner wants no more; the text names the signal."""


class Held(Protocol):
    """The work: `sweep_work.Work`, or a stand-in for it."""

    @property
    def runs(self) -> bool: ...
    def age_s(self) -> float: ...
    def start(self, level: float, look: Callable[[], None]) -> None: ...
    def hold(self, level: float) -> None: ...
    def pause(self, level: float) -> None: ...
    def check(self) -> None: ...
    def sample(self) -> Sample: ...
    def end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in seconds."""

    window_s: float
    settle_s: float  # left out after each change
    job_s: float  # a job may run for so long

    @property
    def pair_s(self) -> float:
        """The length of a pair with all that belongs to it."""
        return 2 * (self.window_s + self.settle_s)


class Sweep:
    """One search. `look` is called all the time and may raise `Interrupted`; `tell` hears of each pair."""

    def __init__(
        self,
        certifier: Certifier,
        work: Held,
        counter: Progress,
        pace: Pace,
        seed: int,
        *,
        look: Callable[[], None],
        tell: Callable[[Pair], None],
        say: Callable[[str], None],
    ) -> None:
        self._certifier = certifier
        self._work = work
        self._counter = counter
        self._pace = pace
        self._coin = random.Random(seed)
        self._look = look
        self._tell = tell
        self._say = say
        self._ends = 0
        self._began = time.monotonic()

    def elapsed_s(self) -> float:
        """Give the seconds since the start."""
        return time.monotonic() - self._began

    def run(self) -> None:
        """Search until it is over. Raises `Interrupted`, and `HostFault` for what this machine can't do."""
        certifier, pair_s = self._certifier, self._pace.pair_s
        while (level := certifier.next(self.elapsed_s(), pair_s)) is not None:
            # The coin is tossed before anything is known of the pair, also for one that comes to nothing.
            kinds: tuple[Kind, Kind] = ("paused", "running") if self._coin.random() < 0.5 else ("running", "paused")
            pair = self._pair(level, kinds)
            if pair is not None:
                certifier.hear(pair, self.elapsed_s(), pair_s)
                self._tell(pair)
        self._work.end()

    def _pair(self, level: float, kinds: tuple[Kind, Kind]) -> Pair | None:
        """Take a pair; None when the job ended in the middle."""
        work = self._work
        try:
            if work.runs and work.age_s() + self._pace.pair_s > self._pace.job_s:
                self._say(f"the job has run for {work.age_s():.0f} s; another one takes its place")
                work.end()
            if not work.runs:
                work.start(level, self._look)
            first, second = (self._window(kind, level) for kind in kinds)
        except WorkEnded as ended:
            work.end()
            self._ends += 1
            if self._ends >= MOST_ENDS:
                self._certifier.end(f"the job must last for some pairs of windows; {self._ends} times {ended}")
            else:
                self._say(f"the job: {ended}; another one takes its place")
            return None
        self._ends = 0
        return Pair(level, first, second)

    def _window(self, kind: Kind, level: float) -> Window:
        work = self._work
        if kind == "paused":
            work.pause(level)
        else:
            work.hold(level)
        self._wait(self._pace.settle_s)
        t = time.time()
        work.sample()
        before = self._counter.read()
        self._wait(self._pace.window_s)
        after = self._counter.read()
        sample = work.sample()
        seconds = max(after.at - before.at, 1e-9)
        if before.value is None or after.value is None:
            fault = f"the counter could not be read: {before.fault or after.fault}"
            return Window(kind, t, seconds, None, sample.share, fault)
        gained = after.value - before.value
        if gained < 0:
            fault = f"the counter went back, from {before.value:.12g} to {after.value:.12g}: it must only grow"
            return Window(kind, t, seconds, gained, sample.share, fault)
        if sample.share is None:
            why = sample.unknown[0].reason if sample.unknown else "no reason was given"
            return Window(kind, t, seconds, gained, None, f"what the work held could not be measured: {why}")
        return Window(kind, t, seconds, gained, sample.share)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._look()
            self._work.check()
