"""From raw counters to gains: what each process of a job, and the job as a whole, used since the last reading.

The rules, each from how drivers count. For every (client, engine) the highest value seen is kept and its gains are
added, never the difference of two sums: a client that closes takes its counter along and would hide what others
gained. A key that appears in a process already watched is all new; one that is gone keeps what was credited. A client
that several processes of the job hold counts once; one that a process outside the job holds too is never the job's.
A fallen value is held until it is passed. Engines add up, so a gain may exceed the time that passed: nothing is
clamped. What could not be read is `Unknown`, in every sum that it belongs to, and stays so for one more reading, since
that one's window reaches back to a moment that nobody saw. It must never turn an unknown into a number. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, Quantity, Unknown, total

SLACK_S = 0.05
"""How coarse "since it started" is: start times come in steps of 10 ms, and reading takes a while."""

SHORTEST_S = 0.02
"""No rate of a device's clock is learnt over less: the moment of a reading is only known to some 0.1 ms."""

MOST_CLOSED = 4096
"""How many closed counters are remembered, in case a reading had only left them out; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Gain:
    """What was used between two readings, in ns: a number, perhaps with bounds, or unknown with a known part."""

    busy: Quantity
    low: int | None = None
    high: int | None = None
    known_ns: int = 0
    """The part that could be read, also where `busy` is unknown: as copies are beside compute that nobody counts."""


NOTHING = Gain(0)
"""What most processes gain most of the time: a known zero."""


@dataclass(frozen=True, slots=True)
class Gains:
    """The gains of each member and of the job. `outside` are clients set apart, as other processes hold them too."""

    processes: Mapping[ProcessKey, Gain]
    job: Gain
    outside: frozenset[str] = frozenset()


def add_gains(gains: Iterable[Gain]) -> Gain:
    """Add gains up: one unknown makes the sum unknown, and bounds add to bounds, an exact gain being both."""
    parts = list(gains)
    busy = total(gain.busy for gain in parts)
    known_ns = sum(gain.known_ns for gain in parts)
    if isinstance(busy, Unknown) or all(gain.low is None and gain.high is None for gain in parts):
        return Gain(busy, known_ns=known_ns)
    numbers = [(gain.busy, gain.low, gain.high) for gain in parts if not isinstance(gain.busy, Unknown)]
    low = sum(number if low is None else low for number, low, _ in numbers)
    high = sum(number if high is None else high for number, _, high in numbers)
    return Gain(busy, low, high, known_ns)


def untold(elsewhere: Collection[str], told: Collection[str], hindered: Mapping[str, Unknown]) -> Unknown | None:
    """Say why nothing is known of a process whose devices the sources `elsewhere` tell of; None where all of them do.

    `told` are the sources that can read here, `hindered` why others can't.
    """
    name = min((name for name in elsewhere if name not in told), default=None)
    if name is None:
        return None
    why = hindered[name].reason if name in hindered else "that source was not asked. Use it too."
    return Unknown(f"it holds a device whose time {name} tells; {why}")


class GainBook:
    """The accounts of one job with one source. The first reading is the baseline: its gains are zero or unknown."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str], _Account] = {}
        self._clocks: dict[str, _Clock] = {}
        self._members: frozenset[ProcessKey] | None = None
        self._began_wall_s: float | None = None
        self._unread: dict[ProcessKey, Unknown] = {}
        self._asleep_from_start: frozenset[ProcessKey] = frozenset()
        self._outside: set[str] = set()

    def add(self, reading: GpuReading, members: Iterable[ProcessKey], *, wall_s: float | None = None) -> Gains:
        """Take one reading in and give the gains since the last one, for `members` alone.

        `wall_s` is the moment of the reading on the clock of start times; without it nothing is judged by age. Time
        that a source added itself (`Added`) already says what it spans, so an earlier unknown does not stain it.
        """
        by_pid = {key.pid: key for key in members}
        if self._members is None:
            self._began_wall_s = wall_s
        self._outside |= reading.outside
        self._close_gone(reading.gone)
        self._learn_clocks(reading)
        known: dict[ProcessKey, int] = {}
        faults: dict[ProcessKey, Unknown] = {}
        seen = self._merge(reading, by_pid)
        for name, found in seen.items():
            account, gain = self._credit(name, found, reading, wall_s)
            if isinstance(gain, Unknown):
                faults.setdefault(account.owner, gain)
            else:
                known[account.owner] = known.get(account.owner, 0) + gain
        left_out = self._left_out(seen)
        gains = self._gains(reading, by_pid, known, faults | left_out)
        self._remember(reading, by_pid, seen.keys(), left_out)
        return Gains(gains, add_gains(gains.values()), frozenset(self._outside))

    def _merge(self, reading: GpuReading, by_pid: Mapping[int, ProcessKey]) -> dict[tuple[str, str], _Found]:
        """Bring the counters of one client together, whatever descriptors and processes show it."""
        seen: dict[tuple[str, str], _Found] = {}
        for counter in reading.counters:
            holder = by_pid.get(counter.pid)
            if holder is None or counter.client in self._outside:
                continue
            found = seen.setdefault((counter.client, counter.engine), _Found(counter, set()))
            found.holders.add(holder)
            if counter.value > found.counter.value:
                seen[counter.client, counter.engine] = found._replace(counter=counter)
        return seen

    def _credit(
        self, name: tuple[str, str], found: _Found, reading: GpuReading, wall_s: float | None
    ) -> tuple[_Account, Quantity]:
        counter = found.counter
        t = reading.t if counter.t is None else counter.t
        account = self._accounts.get(name)
        if account is not None and account.ended_for(found.holders):
            account = None
        if account is None:
            account = self._accounts[name] = _Account(counter, t, min(found.holders, key=_age), set(found.holders))
            return account, self._first_gain(account, wall_s)
        if account.owner not in found.holders:
            account.owner = min(found.holders, key=_age)
        account.holders |= found.holders
        return account, self._further_gain(account, counter, t, reading.dips == "new")

    def _first_gain(self, account: _Account, wall_s: float | None) -> Quantity:
        """Say what of a key's first value is new."""
        if self._members is None or not account.high:
            return 0
        owner = account.owner
        if owner not in self._members and self._began_wall_s is not None and owner.start < self._began_wall_s - SLACK_S:
            return Unknown(f"pid {owner.pid} joined the job after it had used the device. The next sample can tell.")
        if owner in self._asleep_from_start:
            return Unknown("its device slept when measuring began and was not woken. The next sample can tell.")
        gain = self._in_ns(account.counter, account.high, None)
        age_s = -1.0 if wall_s is None else wall_s - owner.start
        # Below 0 the clocks disagree, and age says nothing.
        if not isinstance(gain, Unknown) and age_s >= 0:
            able_ns = (age_s + SLACK_S) * account.counter.capacity * NS_PER_S
            if gain > able_ns:
                return 0  # more than it can have done since it started: inherited, and done by somebody else
        return gain

    def _further_gain(self, account: _Account, counter: Counter, t: float, falls_are_new: bool) -> Quantity:
        before, account.counter = account.counter, counter
        span = _Span(before.total, account.t, counter.total, t)
        account.t = t
        if (before.total is None) != (counter.total is None):
            account.high = counter.value
            return Unknown("its counter changed from one unit to another. The next sample can tell.")
        if counter.value >= account.high:
            gain, account.high = counter.value - account.high, counter.value
        elif falls_are_new:
            gain = account.high = counter.value
        else:
            gain = 0
        return self._in_ns(counter, gain, span)

    def _in_ns(self, counter: Counter, amount: int, span: _Span | None) -> Quantity:
        if counter.total is None or not amount:
            return amount
        rate = (span and span.ns_per_tick()) or self._clocks[counter.device or counter.client].span.ns_per_tick()
        if rate is None:
            return Unknown("the speed of the device's clock is not known yet. The next sample can tell.")
        return amount * rate[0] // rate[1]

    def _learn_clocks(self, reading: GpuReading) -> None:
        for counter in reading.counters:
            if counter.total is not None:
                t = reading.t if counter.t is None else counter.t
                clock = self._clocks.setdefault(counter.device or counter.client, _Clock())
                clock.hear(counter.total, t)

    def _left_out(self, seen: Mapping[tuple[str, str], _Found]) -> dict[ProcessKey, Unknown]:
        """Find who holds a client that is still there while a counter of it was not printed this time."""
        bare = {client: found.holders for (client, engine), found in seen.items() if not engine}
        if not bare:
            return {}
        return {
            min(bare[client], key=_age): Unknown("its driver left out the engines this time. Read again.")
            for (client, engine), account in self._accounts.items()
            if client in bare and account.high and (client, engine) not in seen
        }

    def _gains(
        self,
        reading: GpuReading,
        by_pid: Mapping[int, ProcessKey],
        known: Mapping[ProcessKey, int],
        faults: Mapping[ProcessKey, Unknown],
    ) -> dict[ProcessKey, Gain]:
        windows: dict[int, list[Gain]] = {}
        for added in reading.added:
            gain = Gain(added.busy_ns, added.low_ns, added.high_ns, added.busy_ns)
            windows.setdefault(added.pid, []).append(gain)
        gains: dict[ProcessKey, Gain] = {}
        for pid, key in by_pid.items():
            stain = None if pid in windows else self._unread.get(key)
            fault = reading.unknown.get(pid) or faults.get(key) or stain
            counted = known.get(key, 0)
            gain = Gain(counted, known_ns=counted) if counted else NOTHING
            if pid in windows:
                gain = add_gains([gain, *windows[pid]])
            gains[key] = gain if fault is None else Gain(fault, known_ns=gain.known_ns)
        return gains

    def _remember(
        self,
        reading: GpuReading,
        by_pid: Mapping[int, ProcessKey],
        seen: Collection[tuple[str, str]],
        left_out: Mapping[ProcessKey, Unknown],
    ) -> None:
        living = frozenset(by_pid.values())
        asleep = frozenset(by_pid[pid] for pid in reading.asleep if pid in by_pid)
        begins = self._members is None
        # Only what slept at every reading so far: once read, its accounts stand.
        self._asleep_from_start = asleep if begins else self._asleep_from_start & asleep
        self._unread = {by_pid[pid]: why for pid, why in reading.unknown.items() if pid in by_pid}
        self._unread |= left_out
        self._members = living
        closed = [name for name in self._accounts if name not in seen]
        for name in closed:
            if living.isdisjoint(self._accounts[name].holders):
                del self._accounts[name]
        still = [name for name in closed if name in self._accounts]
        for name in still[: max(0, len(still) - MOST_CLOSED)]:
            del self._accounts[name]

    def _close_gone(self, gone: Collection[int]) -> None:
        if gone:
            for account in self._accounts.values():
                account.ended |= {holder.pid for holder in account.holders if holder.pid in gone}


class _Found(NamedTuple):
    """A key as one reading shows it: its highest counter, and who holds it."""

    counter: Counter
    holders: set[ProcessKey]


@dataclass(slots=True)
class _Account:
    """What is kept of a key: the last counter, the highest value, and who held it."""

    counter: Counter
    t: float
    owner: ProcessKey
    holders: set[ProcessKey]
    high: int = field(init=False)
    ended: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.high = self.counter.value

    def ended_for(self, holders: Collection[ProcessKey]) -> bool:
        """Whether those who hold this key now only have pids of earlier holders: then it is another key."""
        earlier = {holder.pid for holder in self.holders if holder not in holders} | self.ended
        return all(holder.pid in earlier for holder in holders)


class _Span(NamedTuple):
    """A stretch of a device's clock beside ours."""

    from_total: int | None
    from_s: float
    to_total: int | None
    to_s: float

    def ns_per_tick(self) -> tuple[int, int] | None:
        """Give ns and the ticks that they took; None where the stretch is too short to tell."""
        if self.from_total is None or self.to_total is None or self.to_s - self.from_s < SHORTEST_S:
            return None
        ticks = self.to_total - self.from_total
        return (round((self.to_s - self.from_s) * NS_PER_S), ticks) if ticks > 0 else None


UNHEARD = _Span(None, 0.0, None, 0.0)


@dataclass(slots=True)
class _Clock:
    """What was heard of a device's clock since it last began anew."""

    span: _Span = UNHEARD

    def hear(self, ticks: int, t: float) -> None:
        begins = self.span.to_total is None or ticks < self.span.to_total
        if begins:
            self.span = _Span(ticks, t, ticks, t)
        elif t > self.span.to_s:
            self.span = self.span._replace(to_total=ticks, to_s=t)


def _age(key: ProcessKey) -> tuple[float, int]:
    return key.start, key.pid
