"""The scheduling of a device that knows no priorities: first come, first served, each buffer to its end.

Decides which buffer runs when, and whose time it is. Pure: moments come in as nanoseconds of one clock, and the same
calls give the same schedule. A buffer's end is computed when it starts and is never observed, so the accounting is
exact however late somebody looks.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Ran:
    """A buffer that ran: whose, its number among its client's buffers (from 1), and its time on the device in ns."""

    client: int
    ticket: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class Device:
    """One engine. `slowness` stretches every buffer that starts from now on: 2.0 is half the clock."""

    slowness: float = 1.0
    _now_ns: int = 0
    _running: Ran | None = None
    _queue: deque[tuple[int, int, int]] = field(default_factory=deque)  # client, ticket, length in ns
    _tickets: Counter[int] = field(default_factory=Counter)
    _finished_ns: Counter[int] = field(default_factory=Counter)
    _done: list[Ran] = field(default_factory=list)

    def submit(self, client: int, length_ns: int, now_ns: int) -> int:
        """Queue a buffer that takes `length_ns` at full clock, and give its ticket. ValueError for a length below 1."""
        if length_ns < 1:
            raise ValueError(f"buffer: must be at least 1 ns long; found {length_ns}")
        self._go_to(now_ns)
        self._tickets[client] += 1
        self._queue.append((client, self._tickets[client], length_ns))
        if self._running is None:
            self._start_next(self._now_ns)
        return self._tickets[client]

    def advance(self, now_ns: int) -> list[Ran]:
        """Go to a moment, never back, and give the buffers that ended since the last call, in order."""
        self._go_to(now_ns)
        done, self._done = self._done, []
        return done

    def next_end_ns(self) -> int | None:
        """Give the moment at which the running buffer ends; None when the device is idle."""
        return None if self._running is None else self._running.end_ns

    def busy_ns(self, client: int) -> int:
        """Give a client's time on the device up to now, that of a running buffer included."""
        running = self._running
        open_ns = 0 if running is None or running.client != client else self._now_ns - running.start_ns
        return self._finished_ns[client] + open_ns

    def owes(self, client: int) -> bool:
        """Say whether a buffer of this client runs or waits."""
        running = self._running is not None and self._running.client == client
        return running or any(waiting[0] == client for waiting in self._queue)

    def vanish(self, client: int, now_ns: int) -> None:
        """A client is gone: its waiting buffers are dropped, and one that runs is not taken back."""
        self._go_to(now_ns)
        self._queue = deque(waiting for waiting in self._queue if waiting[0] != client)

    def _go_to(self, now_ns: int) -> None:
        while self._running is not None and self._running.end_ns <= now_ns:
            ended = self._running
            self._finished_ns[ended.client] += ended.end_ns - ended.start_ns
            self._done.append(ended)
            self._running = None
            self._start_next(ended.end_ns)
        self._now_ns = max(self._now_ns, now_ns)

    def _start_next(self, at_ns: int) -> None:
        if self._queue:
            client, ticket, length_ns = self._queue.popleft()
            self._running = Ran(client, ticket, at_ns, at_ns + max(1, round(length_ns * self.slowness)))
