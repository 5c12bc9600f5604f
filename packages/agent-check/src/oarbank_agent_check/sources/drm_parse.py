"""What a Linux DRM driver tells in /proc/PID/fdinfo/FD, by the kernel's drm-usage-stats format, and recordings of it.

Decides which lines are time, to which client they belong, and where a driver tells nothing: then the answer is
`Unknown` with what to do, or the source that must be asked instead. It takes any bytes. Engine names are an open set
and are matched whole, never by a prefix: `drm-engine-capacity-NAME` is a count, `drm-total-REGION` is memory. Pure.

Never run: AMD, Intel and Arm GPUs; tested on published readings.
"""

from __future__ import annotations

import errno
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oarbank_agent_check.gpu_readings import Counter, GpuReading, NotARecording
from oarbank_agent_check.readings import Unknown

ENGINE, CAPACITY = "drm-engine-", "drm-engine-capacity-"
CYCLES, TOTAL_CYCLES = "drm-cycles-", "drm-total-cycles-"
_NUMBER = re.compile(r"[0-9]{1,20}")
_NS = re.compile(r"([0-9]{1,20})(?:\s+ns)?")
_PERCENT = re.compile(r"[0-9.]+%")

NVIDIA_DRIVERS = frozenset({"nvidia", "nvidia-drm"})
_ON = "Switch it on as root: echo {mask} > /sys/bus/platform/drivers/{driver}/*.gpu/profiling"
SILENT = {
    "panthor": "panthor's profiling is off, so it tells no time. " + _ON.format(mask=3, driver="panthor"),
    "panfrost": "panfrost's profiling is off, so it tells no time. " + _ON.format(mask=1, driver="panfrost"),
    "nouveau": "nouveau tells memory and no engine time. Use NVIDIA's driver and the source nvml.",
    "virtio_gpu": "a virtual GPU tells no engine time. Measure on the host.",
    "i915": "i915 tells no engine time for graphics older than generation 8.",
    "xe": "xe printed no engines: the device could not be woken to read them. Read again.",
}
"""Why a driver that printed no engine did not, by its name."""

OLD_AMDGPU = (
    "this kernel's amdgpu (5.14 to 5.18) tells percentages of an unknown window, no time. Use Linux 5.19 or newer."
)
NO_FDINFO = "the driver tells nothing of this client in fdinfo."


@dataclass(slots=True)
class FdInfo:
    """One fdinfo text, read: engine names with ns, or with (cycles, total cycles) of the device's clock."""

    driver: str = ""
    pdev: str = ""
    client_id: str = ""
    ino: str = ""
    ns: dict[str, int] = field(default_factory=dict)
    cycles: dict[str, int] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    memory: bool = False
    old_amdgpu: bool = False
    unreadable: list[str] = field(default_factory=list)


def parse_fdinfo(text: bytes) -> FdInfo:
    """Read any bytes as fdinfo; what isn't of the format is left out, and a time that is no number is noted."""
    info = FdInfo()
    plain: dict[str, str] = {}
    for line in text.decode("utf-8", "replace").split("\n"):
        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon:
            continue
        if key.startswith(CAPACITY):
            _count(info.capacity, key.removeprefix(CAPACITY), value)
        elif key.startswith(ENGINE):
            _time(info, info.ns, key.removeprefix(ENGINE), value)
        elif key.startswith(TOTAL_CYCLES):
            _time(info, info.totals, key.removeprefix(TOTAL_CYCLES), value)
        elif key.startswith(CYCLES):
            _time(info, info.cycles, key.removeprefix(CYCLES), value)
        else:
            plain[key] = value
    info.driver, info.pdev = plain.get("drm-driver", ""), plain.get("drm-pdev", "")
    info.client_id, info.ino = plain.get("drm-client-id", ""), plain.get("ino", "")
    info.memory = any(key.startswith(("drm-memory-", "drm-total-", "drm-resident-")) for key in plain)
    # That dialect knows no drm- keys: `pdev`, `vram mem`, and one percentage for each ring.
    info.old_amdgpu = not info.driver and "pdev" in plain and any(_PERCENT.fullmatch(v) for v in plain.values())
    info.old_amdgpu |= not info.driver and "pdev" in plain and "vram mem" in plain
    return info


def _count(into: dict[str, int], name: str, value: str) -> None:
    if _NUMBER.fullmatch(value) and int(value):
        into[name] = int(value)


def _time(info: FdInfo, into: dict[str, int], name: str, value: str) -> None:
    found = _NS.fullmatch(value)
    if not name or not found:
        info.unreadable.append(name)
    else:
        into[name] = max(int(found[1]), into.get(name, 0))


@dataclass(slots=True)
class Client:
    """What one descriptor of a process says: counters, or why there are none, or which source must tell."""

    client: str = ""
    counters: tuple[Counter, ...] = ()
    unknown: Unknown | None = None
    elsewhere: str = ""


def client_of(pid: int, info: FdInfo, node: str = "", driver: str = "", t: float | None = None) -> Client:
    """Say what a descriptor tells. `node` names the device node, and `driver` is the system's name for its driver.

    `t` is the moment at which the text was read.
    """
    driver = info.driver or driver
    if driver in NVIDIA_DRIVERS:
        return Client(elsewhere="nvml")
    if info.old_amdgpu:
        return Client(unknown=Unknown(OLD_AMDGPU))
    if not info.driver:
        return Client(unknown=Unknown(f"{driver or 'its driver'}: {NO_FDINFO}"))
    # An id is unique in its device, or on the whole machine where there is no pdev; the node then only agrees.
    device = info.pdev or f"{driver}@{node or info.ino}"
    client = f"{device}:{info.client_id}"
    if info.unreadable:
        name = info.unreadable[0][:40]
        return Client(client, unknown=Unknown(f"{driver}: the time of engine {name!r} is no number."))
    counters = [
        Counter(pid, client, name, value, capacity=info.capacity.get(name, 1), device=device, t=t)
        for name, value in info.ns.items()
    ]
    for name in info.cycles.keys() - info.ns.keys():
        if name not in info.totals:
            continue  # cycles at an unknown speed are work, not time
        capacity = info.capacity.get(name, 1)
        counters.append(Counter(pid, client, name, info.cycles[name], info.totals[name], capacity, device, t))
    if counters and not info.client_id:
        return Client(unknown=Unknown(f"{driver} tells no client id, so shared descriptors can't be told apart."))
    if not counters and driver == "amdgpu" and info.memory and info.client_id:
        # It prints an engine once its time is not 0: nothing yet, or left out this time, which the accounts know.
        counters = [Counter(pid, client, "", 0, device=device, t=t)]
    if not counters:
        why = SILENT.get(driver, f"{driver} tells no engine time in fdinfo.")
        if driver == "amdgpu":
            why = "amdgpu could not lock the client's memory to read it. Read again."
        return Client(client, unknown=Unknown(why))
    return Client(client, tuple(counters))


def denied(pid: int, number: int) -> Unknown:
    """Say what an error of the system means for a process that lives."""
    if number in (errno.EACCES, errno.EPERM):
        return Unknown(f"pid {pid} is another user's process, or protects itself. Run as its owner or as root.")
    name = errno.errorcode.get(number, f"error {number}")
    return Unknown(f"/proc/{pid}/fdinfo could not be read ({name}).")


GONE = frozenset({errno.ENOENT, errno.ESRCH})
"""Errors that say: the process ended in between."""


def recognises(document: bytes) -> bool:
    """Say whether this is a recording of fdinfo files."""
    return document.lstrip()[:3] == b"#@ "


def readings(documents: Sequence[bytes], pids: Collection[int]) -> list[GpuReading]:
    """Read recordings (`#@ reading`, `#@ file`, `#@ error` lines), in the order of their times.

    Processes besides `pids` are outside the job. Raises NotARecording, saying the line, where a recording is malformed.
    """
    found = [moment for document in documents for moment in _moments(document)]
    found.sort(key=lambda moment: moment.t)
    named = {pid for moment in found for pid in moment.pids()}
    absent = {pid: Unknown(f"the recording says nothing of pid {pid}. Check the number.") for pid in set(pids) - named}
    return [moment.reading(pids, absent) for moment in found]


@dataclass(slots=True)
class _Moment:
    """One reading of a recording."""

    t: float
    files: list[tuple[int, str, list[bytes]]] = field(default_factory=list)
    errors: list[tuple[int, int]] = field(default_factory=list)
    elsewhere: list[tuple[int, str]] = field(default_factory=list)
    asleep: set[int] = field(default_factory=set)
    bare: set[int] = field(default_factory=set)

    def pids(self) -> Iterator[int]:
        yield from (pid for pid, *_ in [*self.files, *self.errors, *self.elsewhere])
        yield from self.asleep | self.bare

    def reading(self, pids: Collection[int], absent: Mapping[int, Unknown]) -> GpuReading:
        clients = [(pid, client_of(pid, parse_fdinfo(b"\n".join(lines)), node)) for pid, node, lines in self.files]
        unknown = dict(absent)
        unknown |= {pid: denied(pid, number) for pid, number in self.errors if number not in GONE}
        for pid, client in clients:
            if client.unknown is not None:
                unknown.setdefault(pid, client.unknown)
        elsewhere = [*self.elsewhere, *((pid, client.elsewhere) for pid, client in clients if client.elsewhere)]
        return GpuReading(
            self.t,
            # Those outside the job teach the device's clock.
            counters=tuple(counter for _, client in clients for counter in client.counters),
            unknown={pid: why for pid, why in unknown.items() if pid in pids},
            outside=frozenset(client.client for pid, client in clients if pid not in pids and client.client),
            # One descriptor that closed in between, of a process that shows others, is no end.
            gone=frozenset(pid for pid, number in self.errors if number in GONE) - {pid for pid, _ in clients},
            elsewhere=gather(elsewhere),
            asleep=frozenset(self.asleep),
        )


def gather(pairs: Sequence[tuple[int, str]]) -> dict[int, frozenset[str]]:
    """Bring the sources named for each process together."""
    return {pid: frozenset(name for other, name in pairs if other == pid) for pid, _ in pairs}


def _moments(document: bytes) -> list[_Moment]:
    moments: list[_Moment] = []
    lines: list[bytes] | None = None
    for at, line in enumerate(document.splitlines(), 1):
        if not line.startswith(b"#@"):
            if lines is not None:
                lines.append(line)
            continue
        kind, words = _marker(line, at)
        lines = None
        if kind == "reading":
            moments.append(_Moment(_moment_s(words, at)))
            continue
        if not moments:
            raise NotARecording(f"line {at}: a '#@ reading t=SECONDS' line must come first; found {kind!r}")
        moment, pid = moments[-1], _whole(words, "pid", at)
        if kind == "file":
            lines = []
            moment.files.append((pid, words.get("rdev", ""), lines))
        elif kind == "error":
            moment.errors.append((pid, _whole(words, "errno", at)))
        elif kind == "holds":
            moment.elsewhere.append((pid, words.get("source", "")))
        elif kind == "asleep":
            moment.asleep.add(pid)
        elif kind == "none":
            moment.bare.add(pid)
        else:
            raise NotARecording(f"line {at}: must be reading, file, error, holds, asleep or none; found {kind[:40]!r}")
    return moments


def _marker(line: bytes, at: int) -> tuple[str, dict[str, str]]:
    words = line[2:].decode("utf-8", "replace").split()
    if not words:
        raise NotARecording(f"line {at}: must say what follows '#@'; found nothing")
    return words[0], {key: value for key, _, value in (word.partition("=") for word in words[1:])}


def _whole(words: Mapping[str, str], key: str, at: int) -> int:
    text = words.get(key, "")
    if not _NUMBER.fullmatch(text):
        raise NotARecording(f"line {at}: {key} must be a whole number; found {text[:40]!r}")
    return int(text)


def _moment_s(words: Mapping[str, str], at: int) -> float:
    try:
        t = float(words.get("t", ""))
    except ValueError:
        t = math.nan
    if not math.isfinite(t):
        raise NotARecording(f"line {at}: t must be seconds; found {words.get('t', '')[:40]!r}")
    return t
