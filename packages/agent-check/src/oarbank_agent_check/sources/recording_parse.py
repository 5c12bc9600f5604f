"""Recordings of any source: which source wrote one, and what the processes gained between its first and last reading.

Decides by content, never by a file's name. It knows no format itself: each source's parser recognises its own. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from types import ModuleType

from oarbank_agent_check.counters import Gain, GainBook, add_gains, untold
from oarbank_agent_check.gpu_readings import GpuReading, NotARecording
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources import (
    cpu_recording_parse,
    drm_parse,
    ioreg_parse,
    kfd_parse,
    nvml_parse,
    pdh_parse,
    plain_recording_parse,
)

PARSERS: tuple[ModuleType, ...] = (
    drm_parse,
    kfd_parse,
    nvml_parse,
    ioreg_parse,
    pdh_parse,
    cpu_recording_parse,
    plain_recording_parse,
)
ONE_READING = Unknown("the recording holds one reading, a baseline. A gain needs two.")


def readings_of(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read the documents of one recording. Raises NotARecording where they are none, or of different sources."""
    for parser in PARSERS:
        # ioreg prints nothing at all where there is nothing to list.
        known = [parser.recognises(document) for document in documents if document.strip()]
        if all(known) and known:
            return parser.readings(documents, pids)
        if any(known):
            raise NotARecording("recording: all files must be of one source; found another kind beside the first.")
    raise NotARecording(
        "recording: must be fdinfo with '#@' lines, ioreg's text or plist, or JSON of KFD, NVML, PDH or CPU clocks;"
        " found none of these."
    )


def gains_of(readings: Iterable[GpuReading], pids: Collection[int]) -> dict[int, Gain]:
    """Give what each process gained over all readings; a recording tells no start times, so a pid is one process."""
    book = GainBook()
    members = [ProcessKey(pid, 0.0) for pid in sorted(set(pids))]
    gains: list[dict[int, Gain]] = []
    for reading in readings:
        found = book.add(reading, members).processes
        gains.append({key.pid: _told(reading, key.pid, gain) for key, gain in found.items()})
    if len(gains) < 2:
        return {key.pid: Gain(ONE_READING) for key in members}
    return {key.pid: add_gains(one[key.pid] for one in gains[1:]) for key in members}


def _told(reading: GpuReading, pid: int, gain: Gain) -> Gain:
    fault = untold(reading.elsewhere.get(pid, ()), (), {})
    return gain if fault is None else Gain(fault, known_ns=gain.known_ns)
