"""NVML's process utilisation: percent of a window, turned into the time each process added.

Decides what one call on one GPU adds to what was known. A row is a process's mean over the samples newer than the
stamp that was asked for, so its time is that percent of the window from the largest stamp known to the largest stamp
of this call, over all processes of the GPU. Rows that can't be true move nothing: percent above 100, a process
without a context, a stamp far ahead. "Not found" is a known zero. The result rests on few samples and carries bounds
(`point_samples`). Stamps are only compared with stamps, never with a clock. Pure.

Never run: NVIDIA GPUs; tested on published readings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oarbank_agent_check.gpu_readings import Added, GpuReading, NotARecording
from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources import nvml_accounting
from oarbank_agent_check.sources.json_recording import looks_like, moment, moments, parse_object, whole
from oarbank_agent_check.sources.nvml_accounting import Account
from oarbank_agent_check.sources.point_samples import LONGEST_PERIOD_US, bounds, looks, shorter_period

FAR_AHEAD_US = 120_000_000
"""A stamp may be ahead of the largest known one by the time that passed and this much; beyond it is leftover memory."""

ROUNDING = 0.005
"""Half a percent: utilisation comes in whole percents."""

FOREIGN = Unknown(
    "NVML names no process that lives here: this container has its own pids. Run on the host, or with --pid=host."
)
GARBAGE = Unknown("NVML gave only leftovers of ended processes for this GPU. End defunct processes, or read again.")
LOST = Unknown("NVML's account of this process is gone from the recording. Record until it has ended.")
RESUMED = Unknown("NVML could not be read a moment ago, so there is no beginning to count from. Read again.")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a call: a process, the stamp of its newest sample in microseconds, percent. None: no usable number."""

    pid: int | None
    stamp_us: int | None
    percent: int | None


@dataclass(frozen=True, slots=True)
class Look:
    """What one call on one GPU gave, at the moment `t` (None: not told).

    `rows` are empty where NVML found nothing newer than `asked_us`. `running` holds a context on this GPU. `living`
    are the pids named by NVML that live in this process's own pid namespace, None where nobody can look.
    """

    t: float | None
    asked_us: int
    rows: tuple[Row, ...] | Unknown
    running: frozenset[int] | Unknown
    living: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class GpuState:
    """What is remembered of a GPU between two calls; `GpuState()` is the start."""

    last_us: int = 0
    """The largest stamp ever trusted, the one to ask with; 0: none."""
    last_t: float | None = None  # when it was learnt
    idle_t: float | None = None  # when NVML last had nothing newer
    t: float | None = None  # of the last call
    begun: bool = False
    broken: bool = False  # the last call could not be used
    running: frozenset[int] = frozenset()
    period_us: int = LONGEST_PERIOD_US


@dataclass(frozen=True, slots=True)
class Part:
    """What one GPU adds to a reading."""

    added: tuple[Added, ...] = ()
    unknown: Mapping[int, Unknown] | None = None


def step(state: GpuState, look: Look, pids: Collection[int]) -> tuple[GpuState, Part]:
    """Take one call and say what `pids` used of this GPU since the last one; the first call is the baseline."""
    # Without the list of contexts a row is taken at its word.
    listed = None if isinstance(look.running, Unknown) else look.running
    holders = set(pids) if listed is None else set(pids) & listed
    if isinstance(look.rows, Unknown):
        # A list without anybody may be as blind as the call itself: so it is where a GPU is split.
        return _broken(state, look), Part(unknown=dict.fromkeys(holders if listed else pids, look.rows))
    if _foreign(state, look, look.rows, listed):
        return _broken(state, look), Part(unknown=dict.fromkeys(pids, FOREIGN))
    fresh, repeated, doubted = _sort(state, look, look.rows)
    stamps = [row.stamp_us for row in fresh.values() if row.stamp_us is not None]
    after = _after(state, look, stamps)
    unknown: dict[int, Unknown] = dict.fromkeys(doubted & set(pids), GARBAGE)
    if look.rows and not fresh and not repeated and (doubted or all(row.percent is None for row in look.rows)):
        unknown |= dict.fromkeys(holders, GARBAGE)
    if not state.begun:
        return after, Part(unknown=dict.fromkeys(holders, RESUMED) if state.broken else None)
    named = [pid for pid in sorted(holders | (fresh.keys() & set(pids))) if pid not in unknown]
    window = _window(state, look, after) if fresh else None
    if fresh and window is None:
        unknown |= dict.fromkeys((pid for pid in named if pid in fresh), RESUMED)
        return after, Part(unknown=unknown)
    # A zero is said, too: it spans this window, whatever was unknown before.
    added = tuple(
        _added(pid, fresh.get(pid), window, after.period_us) if window is not None else Added(pid, 0) for pid in named
    )
    return after, Part(added, unknown)


def _foreign(state: GpuState, look: Look, rows: tuple[Row, ...], listed: frozenset[int] | None) -> bool:
    """Say whether NVML speaks of pids that mean nothing here."""
    living = look.living if look.living is not None else frozenset()
    # The first call gives the driver's whole history, in which most processes may have ended.
    new = [row for row in rows if state.begun and row.percent is not None and (row.stamp_us or 0) > look.asked_us]
    named = {row.pid for row in new if row.pid}
    if look.living is not None and (listed or named) and not ((listed or set()) | named) & living:
        return True
    return bool(listed and named) and not named & ((listed or frozenset()) | state.running | living)


def _sort(state: GpuState, look: Look, rows: tuple[Row, ...]) -> tuple[dict[int, Row], set[int], set[int]]:
    """Give the rows that tell something new, the pids with a row that was seen before, and the pids in doubt."""
    listed = None if isinstance(look.running, Unknown) else look.running | state.running
    last_us = max(state.last_us, look.asked_us)
    ahead_us = None
    if state.last_us and state.last_t is not None and look.t is not None:
        ahead_us = last_us + round((look.t - state.last_t) * 1e6) + FAR_AHEAD_US
    fresh: dict[int, Row] = {}
    repeated: set[int] = set()
    doubted: set[int] = set()
    for row in rows:
        if not row.pid:
            continue
        if row.stamp_us is None or row.percent is None or (ahead_us is not None and row.stamp_us > ahead_us):
            doubted.add(row.pid)
        elif listed is not None and row.pid not in listed:
            # No context, so no time of it is believed; where it is asked for, nothing can be said.
            if row.stamp_us > last_us:
                doubted.add(row.pid)
        elif row.stamp_us <= last_us:
            repeated.add(row.pid)
        elif row.pid not in fresh or (fresh[row.pid].stamp_us or 0) < row.stamp_us:
            fresh[row.pid] = row
    return fresh, repeated, doubted - fresh.keys()


def _after(state: GpuState, look: Look, stamps: list[int]) -> GpuState:
    known = max(state.last_us, 0 if state.begun else look.asked_us)
    return GpuState(
        last_us=max([known, *stamps]),
        last_t=look.t if stamps else state.last_t,
        idle_t=None if stamps else look.t if look.rows == () else state.idle_t,
        t=look.t,
        begun=True,
        running=frozenset() if isinstance(look.running, Unknown) else look.running,
        period_us=shorter_period(state.period_us, [*stamps, *([state.last_us] if state.last_us and stamps else [])]),
    )


def _broken(state: GpuState, look: Look) -> GpuState:
    return replace(state, t=look.t, broken=True)


@dataclass(frozen=True, slots=True)
class _Window:
    span_us: int  # what the percents are of
    recent_us: int  # the part of it since the last call
    most_us: int | None  # the longest that any process can have run since it was known to be idle


def _window(state: GpuState, look: Look, after: GpuState) -> _Window | None:
    since_us = None if look.t is None or state.t is None else round((look.t - state.t) * 1e6)
    if not state.last_us and not since_us:
        return None
    # With nothing known before, all samples there are were taken since the last call.
    span_us = after.last_us - state.last_us if state.last_us else since_us or 0
    recent_us = span_us if since_us is None else min(span_us, max(0, since_us))
    if state.broken:  # the part before the last call belongs to a window that was told as unknown
        span_us = recent_us
    most_us = None
    if state.idle_t is not None and look.t is not None:
        # The newest sample may be one period older than the call that found nothing.
        most_us = max(0, round((look.t - state.idle_t) * 1e6)) + LONGEST_PERIOD_US
    return _Window(span_us, recent_us, most_us)


def _added(pid: int, row: Row | None, window: _Window, period_us: int) -> Added:
    percent = row.percent or 0 if row is not None else 0
    busy_us = percent * window.span_us / 100
    if window.most_us is not None:
        busy_us = min(busy_us, window.most_us)
    count = looks(window.recent_us, period_us)
    low, high = bounds(percent / 100, count, ROUNDING if row is not None else 0.0)
    # The lower bound counts only what can belong to this reading; the upper one whatever the rows may mean.
    low_ns, high_ns = round(low * window.recent_us * 1000), round(high * window.span_us * 1000)
    busy_ns = round(busy_us * 1000)
    return Added(pid, busy_ns, min(low_ns, busy_ns), max(high_ns, busy_ns))


def reading_of(t: float, parts: Iterable[Part]) -> GpuReading:
    """Put the GPUs together: one `Added` a process, and unknown where any GPU of it is."""
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    unknown: dict[int, Unknown] = {}
    for part in parts:
        unknown |= part.unknown or {}
        for one in part.added:
            low = one.busy_ns if one.low_ns is None else one.low_ns
            high = one.busy_ns if one.high_ns is None else one.high_ns
            sums[one.pid] = [a + b for a, b in zip(sums[one.pid], (one.busy_ns, low, high), strict=True)]
    added = tuple(Added(pid, *three) for pid, three in sums.items() if pid not in unknown)
    return GpuReading(t, added=added, unknown=unknown)


# ---- recordings ----------------------------------------------------------------------------------
_ACCOUNT_KEYS = frozenset({"sampleCount", "sumGpuUtil"})
_CALL_KEYS = frozenset({"lastSeenTimeStamp", "samples", "ret", "running"})
_PERCENTS = ("memUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil")


def recognises(document: bytes) -> bool:
    """Say whether this is a recording of NVML: calls for utilisation, or readings of accounting statistics."""
    return looks_like(document, ["calls"], _CALL_KEYS) or looks_like(document, ["readings"], _ACCOUNT_KEYS)


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings, one after the other; raises NotARecording and nothing else."""
    return [reading for document in documents for reading in _read(parse_object(document), pids)]


def _read(value: Mapping[str, Any], pids: Collection[int]) -> list[GpuReading]:
    return _read_calls(value, pids) if "calls" in value else _read_accounts(value, pids)


def _read_calls(value: Mapping[str, Any], pids: Collection[int]) -> list[GpuReading]:
    found, state = [], GpuState()
    for t, call in moments(value, "calls"):
        state, part = step(state, _look(call), pids)
        found.append(reading_of(t, [part]))
    return found


def _look(call: Mapping[str, Any]) -> Look:
    listed = call.get("running")
    known = isinstance(listed, list) and all(whole(pid) is not None for pid in listed)
    running = (
        frozenset(listed) if known and listed is not None else Unknown("the recording lacks the list of contexts.")
    )
    return Look(moment(call), whole(call.get("lastSeenTimeStamp")) or 0, _rows(call), running)


def _rows(call: Mapping[str, Any]) -> tuple[Row, ...] | Unknown:
    samples, code = call.get("samples"), call.get("ret", "SUCCESS")
    name = code.removeprefix("NVML_").removeprefix("ERROR_") if isinstance(code, str) else code
    if name in ("NOT_FOUND", 6):
        return ()
    if name not in ("SUCCESS", 0) or not isinstance(samples, list):
        return Unknown(f"NVML answered {str(name)[:40]} when asked for the utilisation of processes.")
    return tuple(row_of(row) for row in samples if isinstance(row, dict))


def row_of(row: Mapping[str, Any]) -> Row:
    """Read one row; any percentage above 100 makes the row worthless, whichever engine's it is."""
    percent = whole(row.get("smUtil"), 100)
    if any(whole(row.get(key, 0), 100) is None for key in _PERCENTS):
        percent = None
    return Row(whole(row.get("pid")), whole(row.get("timeStamp")), percent)


def _read_accounts(value: Mapping[str, Any], pids: Collection[int]) -> list[GpuReading]:
    rows = value.get("readings")
    if isinstance(rows, list) and any(isinstance(row, dict) and moment(row) is None for row in rows):
        raise NotARecording("recording: each reading of accounts must carry t_s, its seconds; found one without.")
    by_moment: dict[float, dict[int, Account | Unknown]] = defaultdict(dict)
    for t, row in moments(value):
        pid = whole(row.get("pid"))
        by_moment[t] |= {} if pid is None or pid not in pids else {pid: account_of(row)}
    found, marks = [], None
    for t, accounts in by_moment.items():
        lost = dict.fromkeys((marks or {}).keys() - accounts.keys(), LOST)
        marks, added, unknown = nvml_accounting.step(marks, t, accounts)
        found.append(GpuReading(t, added=tuple(added), unknown=unknown | lost))
    return found


def account_of(row: Mapping[str, Any]) -> Account | Unknown:
    """Read the statistics of one process; all ones are NVML's "not available"."""
    samples, total = whole(row.get("sampleCount"), (1 << 32) - 2), whole(row.get("sumGpuUtil"), (1 << 64) - 2)
    if samples is None or total is None:
        return Unknown(
            "NVML's account of this process has no samples. Update the NVIDIA driver to release 610 or newer."
        )
    return Account(samples, total)
