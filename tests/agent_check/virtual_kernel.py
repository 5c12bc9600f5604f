"""A kernel on paper: threads that run when the table says so, and clocks that move as Linux's do.

A thread's clock is exact when the thread leaves the CPU; while it runs, it moves only at the CPU's own tick, every
4 ms. `measure` drives the meter's pure parts over such a table, with the same random plan of ticks and no real time.
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from oarbank_agent_check.process_table import ProcessKey
from oarbank_agent_check.sources.cpu_threads_parse import Ledger, ProcessReading
from oarbank_agent_check.sources.ticks import Tick, TickBook

MS = 1_000_000
S = 1_000_000_000
KEY = ProcessKey(100, 1000.0)


@dataclass(frozen=True)
class VirtualThread:
    """One thread: when it ran (sorted, apart), the phase of its CPU's tick, and when it lived."""

    runs: Sequence[tuple[int, int]]
    phase_ns: int = 0
    born_ns: int = 0
    dies_ns: int = 1 << 62
    step_ns: int = 4 * MS
    _done: list[int] = field(init=False, repr=False, compare=False)  # used before each run

    def __post_init__(self) -> None:
        object.__setattr__(self, "_done", [0, *accumulate(end - begin for begin, end in self.runs)])

    def used_ns(self, at_ns: int) -> int:
        """Give what the thread really used until then."""
        number, run = self._run(at_ns)
        return 0 if run is None else self._done[number] + min(run[1], at_ns) - run[0]

    def runs_at(self, at_ns: int) -> bool:
        """Say whether it runs at that moment."""
        _number, run = self._run(at_ns)
        return run is not None and at_ns < run[1]

    def clock_ns(self, at_ns: int) -> int:
        """Give what the kernel shows at that moment."""
        number, run = self._run(at_ns)
        if run is None:
            return 0
        begin, end = run
        if at_ns >= end:
            return self._done[number + 1]
        moved = (at_ns - self.phase_ns) // self.step_ns * self.step_ns + self.phase_ns
        return self._done[number] + max(0, moved - begin)

    def _run(self, at_ns: int) -> tuple[int, tuple[int, int] | None]:
        number = bisect.bisect_right(self.runs, (at_ns, 1 << 62)) - 1
        return number, self.runs[number] if number >= 0 else None


def runs(period_ms: float, length_ms: float, until_s: float, *, offset_ms: float = 0) -> list[tuple[int, int]]:
    """Give runs of `length_ms` every `period_ms`, from `offset_ms` on."""
    begin, result = offset_ms, []
    while begin + length_ms < until_s * 1000:
        result.append((round(begin * MS), round((begin + length_ms) * MS)))
        begin += period_ms
    return result


def read(threads: Sequence[VirtualThread], at_ns: int) -> ProcessReading:
    """Read one process as the Linux reader does: the total with ended threads, and every living thread."""
    clocks = {
        number: thread.clock_ns(at_ns)
        for number, thread in enumerate(threads, 1)
        if thread.born_ns <= at_ns < thread.dies_ns
    }
    total = sum(thread.clock_ns(min(at_ns, thread.dies_ns)) for thread in threads if thread.born_ns <= at_ns)
    running = sum(thread.runs_at(at_ns) for thread in threads)
    return ProcessReading(KEY, total, clocks, running=running)


def measure(
    threads: Sequence[VirtualThread], length_s: float, *, seed: int = 1, late_ns: int = 100_000, watch: bool = True
) -> list[Tick]:
    """Meter a process for `length_s`; each tick ends up to `late_ns` later than planned.

    Without `watch` nobody tells how many threads run at once, as on systems where that cannot be read.
    """
    chance = random.Random(seed)
    ledger, book = Ledger(), TickBook(0)
    ledger.credit([read(threads, 0)])
    now_ns = 0
    while now_ns < length_s * S:
        now_ns = book.due_ns(chance.random()) + chance.randrange(late_ns)
        reading = read(threads, now_ns)
        book.add(now_ns, ledger.credit([reading]), reading.running if book.watching and watch else None)
    return book.ticks()
