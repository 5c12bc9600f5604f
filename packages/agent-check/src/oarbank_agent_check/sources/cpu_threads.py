"""The CPU stand-in for a GPU: how long the busiest thread of a process tree ran, tick by tick.

The shell around `ticks` and `cpu_threads_parse`: one thread that reads, adds, and sleeps until the next tick. It holds
no rule of its own. It must stay cheap (`cost` says how cheap it was), and a meter that broke must say so: every
sample after that is unknown.
"""

from __future__ import annotations

import random
import threading
import time

from oarbank_agent_check.process_table import START_RESOLUTION_S
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, ProcessTime, Quantity, Sample, Unknown, sample_of
from oarbank_agent_check.sources.cpu_threads_parse import Ledger, ProcessReading
from oarbank_agent_check.sources.cpu_threads_read import ThreadReader, system_reader
from oarbank_agent_check.sources.ticks import Tick, TickBook
from oarbank_agent_check.tree import ProcessTree

FOLLOW_APART = 100
"""Two looks for new processes are at least this many times as far apart as one takes: 1 % of a core at most."""


class CpuThreads:
    """Meters a tree: in every tick of at most `tick_s` the largest gain of any one thread counts as busy.

    `keep_s` says how long ticks are remembered. Between `start` and `stop` it owns one thread. The other methods may
    be called from any thread.
    """

    name = "cpu-threads"
    reads = "the CPU time of each thread of the process tree, standing in for GPU time"

    def __init__(
        self, tree: ProcessTree, tick_s: float = 0.005, *, keep_s: float = 600.0, reader: ThreadReader | None = None
    ) -> None:
        if not 0 < tick_s <= 1:
            raise ValueError(f"tick_s: must be above 0 and at most 1 second; found {tick_s}")
        self._tree = tree
        self._reader = reader if reader is not None else system_reader()
        self._longest_ns = round(tick_s * NS_PER_S)
        self._keep_ns = round(keep_s * NS_PER_S)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._book: TickBook | None = None
        self._ledger = Ledger()
        self._members: tuple[ProcessKey, ...] = ()
        self._seen: dict[ProcessKey, None] = {}  # members since the last sample, those that ended included
        self._hidden: dict[int, Unknown] = {}
        self._fault: Unknown | None = None
        self._born_after = 0.0
        self._newest: object = None
        self._followed_ns = 0
        self._follow_cost_ns = 0
        self._began_ns = 0
        self._ticked_ns = 0
        self._own_ns = 0

    def start(self) -> None:
        """Take the baseline and begin to tick; raises RuntimeError when it was started before."""
        if self._book is not None:
            raise RuntimeError("cpu-threads: start() works once; make another CpuThreads for another run")
        self._born_after = time.time() - START_RESOLUTION_S
        self._newest = self._tree.newest()
        self._members = self._tree.refresh()
        # Whoever lives at the baseline is old, whatever the coarse start times say.
        self._ledger.credit(self._reader.read(self._members, born_after=float("inf")))
        self._forget_members()
        self._began_ns = self._followed_ns = self._ticked_ns = time.monotonic_ns()
        self._book = TickBook(self._began_ns, self._longest_ns, self._keep_ns)
        self._thread = threading.Thread(target=self._run, name="oarbank-cpu-threads", daemon=True)
        self._thread.start()

    def sample(self) -> Sample:
        """Say how busy the tree was since `start` or the last sample.

        Raises RuntimeError before `start`, and ValueError when no time has passed since the last sample.
        """
        book = self._begun()
        with self._lock:
            if self._thread is not None and self._fault is None:
                self._tick(book)
            length_ns, busy_ns, by_process = book.take()
            unknown = self._ledger.take_unknown()
            seen, hidden = self._seen, self._hidden
            self._forget_members()
        busy: Quantity = busy_ns if self._fault is None else self._fault
        used = {key: unknown.get(key) or hidden.get(key.pid) or by_process.get(key, 0) for key in seen}
        return sample_of(
            t=time.time(),
            window_s=length_ns / NS_PER_S,
            busy=busy,
            processes=[ProcessTime(key.pid, key.start, self._fault or time_ns) for key, time_ns in used.items()],
            hidden=hidden,
            source=self.name,
            detail=self._reader.clock,
        )

    def ticks(self) -> list[Tick]:
        """Give every tick since `start`; those of the last 20 ms may still grow."""
        with self._lock:
            return self._begun().ticks()

    def lateness(self) -> tuple[float, float]:
        """Say by how many seconds ticks came later than planned: the median and the worst."""
        with self._lock:
            return self._begun().lateness_s()

    def cost(self) -> float:
        """Say what share of one core the meter's own thread has used since `start`."""
        with self._lock:
            wall_ns = self._ticked_ns - self._began_ns
            return self._own_ns / wall_ns if wall_ns else 0.0

    def stop(self) -> None:
        """End the thread and close all files; what was measured can still be asked for. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()
            self._reader.close()

    def _begun(self) -> TickBook:
        if self._book is None:
            raise RuntimeError("cpu-threads: start() must come first")
        return self._book

    def _run(self) -> None:
        book = self._begun()
        idle_ns = time.thread_time_ns()
        try:
            while not self._ended.is_set():
                with self._lock:
                    due_ns = book.due_ns(random.random())
                time.sleep(max(0, due_ns - time.monotonic_ns()) / NS_PER_S)
                with self._lock:
                    self._tick(book)
                    self._own_ns = time.thread_time_ns() - idle_ns
        except Exception as fault:  # the one fence: a meter that broke must say so, not read zero from then on
            self._fault = Unknown(f"the meter broke ({type(fault).__name__}: {str(fault)[:80]}). Start another one.")

    def _tick(self, book: TickBook) -> None:
        """Read everything once; the caller holds the lock."""
        readings = self._reader.read(self._members, born_after=self._born_after, watch=book.watching)
        # Before anybody is closed: a process read for the last time would else open a second account, from its start.
        gains = self._ledger.credit(readings)
        newest = self._tree.newest()
        now_ns = time.monotonic_ns()
        since_ns = now_ns - self._followed_ns
        # A process can be new only if something was started; without such a sign the tree is asked at its own pace.
        sign = newest is not None and newest != self._newest and since_ns > FOLLOW_APART * self._follow_cost_ns
        if sign or since_ns > self._tree.pause_s * NS_PER_S:
            gains |= self._ledger.credit(self._follow())
            self._newest, self._followed_ns = newest, now_ns
            self._follow_cost_ns = time.monotonic_ns() - now_ns
        running = [reading.running for reading in readings if reading.running is not None]
        self._ticked_ns = time.monotonic_ns()
        book.add(self._ticked_ns, gains, sum(running) if running else None)

    def _follow(self) -> list[ProcessReading]:
        """Ask the tree who has ended and who is new, and read the new ones."""
        before, self._members = self._members, self._tree.refresh()
        self._hidden.update(self._tree.unreadable())
        ended = set(before).difference(self._members)
        self._ledger.close(ended)
        self._reader.forget(ended)
        fresh = [key for key in self._members if key not in before]
        self._seen.update(dict.fromkeys(fresh))
        return self._reader.read(fresh, born_after=self._born_after) if fresh else []

    def _forget_members(self) -> None:
        self._seen = dict.fromkeys(self._members)
        self._hidden = self._tree.unreadable()
