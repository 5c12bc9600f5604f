"""CPU time per thread: the text of /proc, and readings of thread clocks turned into gains.

`Ledger` decides what each thread gained since the reading before. A gain is never negative, everything a process used
is credited exactly once, and what cannot be read is unknown, never zero. Pure: no clock, no file, no process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from oarbank_agent_check.readings import ProcessKey, Unknown

ENDED = 0
"""Stands in for a thread id where time belongs to threads that ended between two readings; no thread has id 0."""

Gains = dict[tuple[ProcessKey, int], int]
"""Nanoseconds gained per (process, thread id); `ENDED` gathers threads that are gone."""


def parse_schedstat(text: bytes | str) -> int:
    """Read the nanoseconds on a CPU: the first of the three numbers of a `schedstat` file. Raises ValueError."""
    try:
        return int(text.split(None, 1)[0])
    except IndexError:
        return _refuse("schedstat", text)


def parse_stat_cpu(text: bytes | str) -> int:
    """Read user plus system time, in clock ticks (mostly 10 ms), out of a `stat` file. Raises ValueError."""
    line = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    fields = line[line.rfind(")") + 2 :].split()
    if len(fields) < 13:
        return _refuse("stat", text)
    return int(fields[11]) + int(fields[12])


def parse_stat_state(text: bytes) -> str:
    """Read the state letter out of a `stat` file: R runs or waits for a CPU. Raises ValueError."""
    at = text.rfind(b") ") + 2
    return text[at : at + 1].decode() if at >= 2 and len(text) > at else str(_refuse("stat", text))


def _refuse(file: str, text: bytes | str) -> int:
    raise ValueError(f"{file}: must hold the CPU time; found {text[:80]!r}")


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """What was read of one process at one moment."""

    key: ProcessKey
    total_ns: int | None  # the whole process, ended threads included; None where no such clock exists
    threads: Mapping[int, int] | None  # ns of each living thread; None when not looked at, since the total stood still
    whole: bool = False  # at first sight: it began after the meter did, so all of its time counts
    running: int | None = None  # threads that run or wait for a CPU; None when not asked
    unknown: Unknown | None = None  # why it could not be read; the rest is then empty


@dataclass(slots=True)
class _Account:
    """What is known about one process between two readings."""

    threads: dict[int, int]
    base_ns: int | None  # the total at the baseline
    credited_ns: int = 0


@dataclass(slots=True)
class Ledger:
    """Keeps the last reading of every thread; `credit` says what a newer one adds.

    Per process, the credits of its threads plus those of its ended threads add up to the gain of its total.
    """

    accounts: dict[ProcessKey, _Account] = field(default_factory=dict)
    unknown: dict[ProcessKey, Unknown] = field(default_factory=dict)  # since the last call of `take_unknown`
    _broken: set[ProcessKey] = field(default_factory=set)  # were unknown once: never again count from their start

    def credit(self, readings: Iterable[ProcessReading]) -> Gains:
        """Take the readings of one moment and give what every thread gained; threads that gained nothing are absent."""
        gains: Gains = {}
        for reading in readings:
            if reading.unknown is not None:
                self.unknown[reading.key] = reading.unknown
                self._broken.add(reading.key)
                # What it used meanwhile cannot be told from what it will use: it starts again from a baseline.
                self.accounts.pop(reading.key, None)
            elif (account := self.accounts.get(reading.key)) is None:
                self._open(reading, gains)
            else:
                _gain(account, reading, gains)
        return gains

    def close(self, keys: Iterable[ProcessKey]) -> None:
        """Drop processes that have ended; what they were credited stays credited."""
        for key in keys:
            self.accounts.pop(key, None)
            self._broken.discard(key)

    def take_unknown(self) -> dict[ProcessKey, Unknown]:
        """Give the processes that were unknown since the last call, and begin a new list."""
        gone, self.unknown = self.unknown, {}
        return gone

    def _open(self, reading: ProcessReading, gains: Gains) -> None:
        whole = reading.whole and reading.key not in self._broken
        threads = dict(reading.threads or {})
        if whole:
            account = _Account({}, None if reading.total_ns is None else 0)
            _gain(account, reading, gains)
        else:
            account = _Account(threads, reading.total_ns)
        self.accounts[reading.key] = account


def _gain(account: _Account, reading: ProcessReading, gains: Gains) -> None:
    gone = 0
    if reading.threads is not None:
        gone = _gain_threads(account, reading.key, reading.threads, gains)
    if reading.total_ns is None or account.base_ns is None:
        return
    # The total includes ended threads. What no living thread explains was theirs: the last bit of a thread seen
    # before, or all of one that came and went between two readings. The total is read first, so it can only lag.
    ended_ns = reading.total_ns - account.base_ns - account.credited_ns
    if reading.threads is not None and ended_ns > 0:
        account.credited_ns += ended_ns
        gains[reading.key, ENDED] = -(-ended_ns // max(1, gone))


def _gain_threads(account: _Account, key: ProcessKey, threads: Mapping[int, int], gains: Gains) -> int:
    """Credit the living threads and give how many of those seen before are gone."""
    kept = account.threads
    for thread, now_ns in threads.items():
        before_ns = kept.get(thread, 0)
        # A thread clock never runs back: a smaller reading is another thread with the same id, new since then.
        gain_ns = now_ns - before_ns if now_ns >= before_ns else now_ns
        if gain_ns:
            gains[key, thread] = gain_ns
            account.credited_ns += gain_ns
    account.threads = dict(threads)
    return 0 if kept.keys() == threads.keys() else len(kept.keys() - threads.keys())
