"""Recordings of CPU clocks, the stand-in where no GPU can be read: Linux' /proc and macOS' task information.

Decides which clock covers a whole process. On Linux that is `stat` (user plus system time, ended threads included, in
clock ticks); `schedstat` of the process is its first thread alone, and a sum over `tasks` loses the threads that
ended, so tasks serve only where `stat` is missing throughout and no thread ended. On macOS it is `pti_total_user` plus
`pti_total_system` in ticks of `hw_tbfrequency`, never nanoseconds. Pure.

Never run: macOS; tested on published readings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import NS_PER_S, Unknown
from oarbank_agent_check.sources.cpu_threads_parse import parse_schedstat, parse_stat_cpu
from oarbank_agent_check.sources.json_recording import looks_like, moments, parse_object, whole

USUAL_TICKS = 100
"""Linux' USER_HZ, the unit of `stat`: 100 on every machine that this program has been built for."""

MOST_CORES = 1024
"""A process may gain so many seconds a second: its clock adds up its threads."""

LINUX_KEYS = frozenset({"stat", "tasks", "schedstat"})
MAC_KEYS = frozenset({"pti_total_user", "pti_total_system"})
ENDED_ERRNOS = (2, 3)
"""ENOENT and ESRCH: a reading with one of these as `errno` found no process any more."""

_HEADS = frozenset({"clk_tck", "hw_tbfrequency"})
_START_AT = 19  # of the fields behind the name: field 22, the start in clock ticks since boot
_MOST_DIGITS = 20


def recognises(document: bytes) -> bool:
    """Say whether this is a recording of CPU clocks, of Linux or macOS."""
    return looks_like(document, ["readings"], LINUX_KEYS | MAC_KEYS | _HEADS)


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings, one after the other; raises NotARecording and nothing else."""
    return [reading for document in documents for reading in _read(parse_object(document), pids)]


def _read(value: Mapping[str, Any], pids: Collection[int]) -> list[GpuReading]:
    rows = moments(value)
    mac = "hw_tbfrequency" in value or any(not MAC_KEYS.isdisjoint(row) for _, row in rows)
    return _mac(value, rows, pids) if mac else _linux(value, rows, pids)


def _all_unknown(t: float, pids: Collection[int], why: str) -> GpuReading:
    return GpuReading(t, unknown=dict.fromkeys(pids, Unknown(why)))


# ---- macOS ---------------------------------------------------------------------------------------
def _mac(
    value: Mapping[str, Any], rows: Sequence[tuple[float, Mapping[str, Any]]], pids: Collection[int]
) -> list[GpuReading]:
    found = []
    for t, row in rows:
        pid = whole(row.get("pid", value.get("pid")))
        if pid is None and len(set(pids)) != 1:
            found.append(_all_unknown(t, pids, "a recording of macOS CPU time is of one process. Ask for one pid."))
            continue
        mine = [each for each in set(pids) if pid is None or each == pid]
        if _ended(row):
            found.append(GpuReading(t, gone=frozenset(mine)))
            continue
        ticks = _ticks(row, whole(value.get("hw_tbfrequency")))
        if isinstance(ticks, Unknown):
            found.append(GpuReading(t, unknown=dict.fromkeys(mine, ticks)))
        else:
            # A task's clock never runs back: a smaller one belongs to another process that has the pid.
            counters = tuple(Counter(each, f"task/{each}", "cpu", ticks, capacity=MOST_CORES) for each in mine)
            found.append(GpuReading(t, counters, dips="new"))
    return found


def _ticks(row: Mapping[str, Any], frequency: int | None) -> int | Unknown:
    """Give the time of one reading in nanoseconds."""
    parts = [whole(row.get(key)) for key in sorted(MAC_KEYS)]
    if not frequency:
        return Unknown("without hw_tbfrequency the ticks have no length. Record `sysctl hw.tbfrequency` too.")
    if any(part is None for part in parts):
        return Unknown("the reading lacks pti_total_user or pti_total_system. Record as the owner of the process.")
    return sum(part for part in parts if part is not None) * NS_PER_S // frequency


# ---- Linux ---------------------------------------------------------------------------------------
def _linux(
    value: Mapping[str, Any], rows: Sequence[tuple[float, Mapping[str, Any]]], pids: Collection[int]
) -> list[GpuReading]:
    hz = whole(value.get("clk_tck", USUAL_TICKS))
    if not any(isinstance(row.get("stat"), str) for _, row in rows):
        return _tasks(rows, pids, whole(value.get("pid")))
    recorded = {pid for _, row in rows if (pid := _pid(row.get("stat"))) is not None}
    return [_by_stat(t, row, hz, set(pids), recorded) for t, row in rows]


def _ended(row: Mapping[str, Any]) -> bool:
    return row.get("errno") in ENDED_ERRNOS


def _pid(stat: Any) -> int | None:
    digits = stat.partition(" ")[0] if isinstance(stat, str) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS else None


def _by_stat(t: float, row: Mapping[str, Any], hz: int | None, pids: set[int], recorded: set[int]) -> GpuReading:
    stat = row.get("stat")
    pid = _pid(stat)
    if _ended(row):
        return GpuReading(t, gone=frozenset(pids & (recorded or pids)))
    if not isinstance(stat, str) or pid is None or not hz:
        # Nobody can say whose line it would be: all whose time this recording holds.
        return _all_unknown(t, pids & (recorded or pids), "the reading holds no usable stat line. Record again.")
    if pid not in pids:
        return GpuReading(t)
    try:
        ticks = parse_stat_cpu(stat)
        start = stat[stat.rfind(")") + 2 :].split()[_START_AT]
    except (ValueError, IndexError):
        return _all_unknown(t, {pid}, f"the stat line of pid {pid} is cut short or damaged. Record again.")
    if ticks < 0:
        return _all_unknown(t, {pid}, f"the stat line of pid {pid} holds a time below 0. Record again.")
    # The start is part of the name: another process with this pid is all new.
    return GpuReading(t, (Counter(pid, f"process/{pid}/{start}", "cpu", ticks * NS_PER_S // hz, capacity=MOST_CORES),))


def _tasks(rows: Sequence[tuple[float, Mapping[str, Any]]], pids: Collection[int], pid: int | None) -> list[GpuReading]:
    """Read threads one by one, where no reading has `stat`."""
    known: set[str] = set()
    found = []
    for t, row in rows:
        tasks = row.get("tasks")
        owner = pid if pid is not None else next(iter(pids)) if len(set(pids)) == 1 else None
        if owner is None or not isinstance(tasks, dict):
            found.append(_all_unknown(t, pids, "the reading holds neither stat nor tasks of the process. Record stat."))
            continue
        reading = _by_threads(t, tasks, owner) if owner in pids else GpuReading(t)
        if known - tasks.keys() and owner in pids:
            why = f"a thread of pid {owner} ended and took its time along. Record /proc/{owner}/stat too."
            reading = replace(reading, unknown={owner: Unknown(why)})
        known = set(tasks)
        found.append(reading)
    return found


def _by_threads(t: float, tasks: Mapping[str, Any], pid: int) -> GpuReading:
    counters = []
    for thread, text in tasks.items():
        try:
            value = parse_schedstat(text) if isinstance(text, str) else -1
        except ValueError:
            value = -1
        if value < 0:
            return _all_unknown(t, {pid}, f"the schedstat of a thread of pid {pid} is damaged. Record again.")
        counters.append(Counter(pid, f"thread/{pid}/{thread}", "cpu", value))
    return GpuReading(t, tuple(counters), dips="new")
