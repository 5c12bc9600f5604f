"""What the kernel tells of a ROCm process in /sys/class/kfd/kfd/proc/PID, and recordings of it.

ROCm hands work to the device through queues of its own, which no counter of time follows: a process with a queue has
used the device for an unknown time, whatever else reads 0. What the copy engines did is known (`sdma_GPU`, in us) and
handed over besides. `cu_occupancy` is a snapshot, not time, and is not read. A process that is listed without queues
has only opened the device: a known zero. Pure.

Never run: AMD GPUs with ROCm; tested on published readings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oarbank_agent_check.gpu_readings import Counter, GpuReading, NotARecording
from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.sources.drm_parse import Client, client_of, parse_fdinfo
from oarbank_agent_check.sources.json_recording import looks_like, moments, parse_object

COPIES = "sdma"
QUEUES = Unknown(
    "ROCm queues are open, and the kernel counts no time of their compute work."
    " Measure on a device that counts it, or run such jobs alone."
)
_PATH = re.compile(r"/sys/class/kfd/kfd/proc/([0-9]{1,10})/(.+)")
_QUEUE = re.compile(r"queues/[^/]+(?:/.*)?")
_SDMA = re.compile(r"sdma_([0-9]{1,20})")
_NUMBER = re.compile(r"[0-9]{1,20}")


def judge(pid: int, files: Mapping[str, str]) -> tuple[tuple[Counter, ...], Unknown | None]:
    """Say what the files of one process tell, by their path in its directory: copies in ns, and whether that is all."""
    counters = []
    fault = QUEUES if any(_QUEUE.fullmatch(name) for name in files) else None
    for name, text in files.items():
        if device := _SDMA.fullmatch(name):
            if _NUMBER.fullmatch(text.strip()):
                counters.append(Counter(pid, f"kfd:{device[1]}:{pid}", COPIES, int(text) * 1000))
            else:
                fault = fault or Unknown(f"the copy time of ROCm device {device[1]} is no number.")
    return tuple(counters), fault


def written(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Give readings as the recording that `readings` reads."""
    return json.dumps({"readings": list(rows)}, indent=1).encode() + b"\n"


def recognises(document: bytes) -> bool:
    """Say whether this is a recording of KFD files."""
    return looks_like(document, ["readings"], frozenset({"sysfs"}))


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings: JSON with `readings`, each with `t_s`, `sysfs` (path: content), perhaps the process's `fdinfo`.

    Raises NotARecording where a recording is malformed.
    """
    rows = [row for document in documents for row in moments(parse_object(document))]
    found = [_reading(t, row, set(pids)) for t, row in rows]
    named = {pid for _, listed in found for pid in listed}
    absent = {pid: Unknown(f"the recording says nothing of pid {pid}. Check the number.") for pid in set(pids) - named}
    return [replace(reading, unknown={**reading.unknown, **absent}) for reading, _ in found]


def _reading(t: float, row: Mapping[str, Any], pids: Collection[int]) -> tuple[GpuReading, frozenset[int]]:
    sysfs = row.get("sysfs")
    if not isinstance(sysfs, dict):
        raise NotARecording(f"recording: each reading must hold 'sysfs', paths and contents; found {str(sysfs)[:60]}.")
    files: dict[int, dict[str, str]] = {}
    for path, text in sysfs.items():
        if place := _PATH.fullmatch(path):
            files.setdefault(int(place[1]), {})[place[2]] = text if isinstance(text, str) else ""
    counters: list[Counter] = []
    unknown: dict[int, Unknown] = {}
    text = row.get("fdinfo")
    for pid in files.keys() & set(pids):
        more, fault = judge(pid, files[pid])
        # The recording's process showed this in fdinfo as well, where graphics have their time.
        client = client_of(pid, parse_fdinfo(text.encode("utf-8", "replace"))) if isinstance(text, str) else Client()
        counters += [*more, *client.counters]
        if why := fault or client.unknown:
            unknown[pid] = why
    return GpuReading(t, tuple(counters), unknown=unknown), frozenset(files)
