"""Reads /proc/PID/fdinfo of the DRM devices that a job's processes hold; the file of this source that touches Linux.

Only the job's own processes are looked at: their descriptors are asked for their device numbers, and only those of a
GPU are read, so the cost grows with the job and not with the machine. A process that has not run since it was looked
at holds what it held, and is not searched again; its counters are read all the same. A sleeping xe device is left
asleep as long as nobody used it: reading would wake it. What can't be read is handed on as `Unknown`, a process that
ended as gone.

Never run: AMD, Intel and Arm GPUs; tested on a made /proc.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.drm_parse import GONE, client_of, denied, gather, parse_fdinfo

Kind = Literal["drm", "nvml", "kfd", "wsl"]

MOST_BYTES = 65536
"""What is read of one fdinfo; a client with many memory regions prints some 4 KiB."""

FIXED_MAJORS: dict[int, Kind | None] = {226: "drm", 261: "drm", 195: "nvml"}
"""Device numbers that Linux gives out for good: DRM, accelerators, NVIDIA. Others come from /proc/devices."""

KINDS: dict[str, Kind] = {
    "drm": "drm", "accel": "drm", "nvidia": "nvml", "nvidia-frontend": "nvml", "nvidia-uvm": "nvml", "kfd": "kfd",
}  # fmt: skip
WSL = Unknown("it holds /dev/dxg, and under WSL nothing tells GPU time of processes. Measure on Windows.")
WAKES = frozenset({"xe"})
"""Drivers whose device wakes up when it is read [kernel drivers/gpu/drm/xe/xe_drm_client.c]."""

OUR_WAKE_MS = 250
"""How much longer than its delay a device stays awake after a reading of ours."""


def device_number(name: str, directory: int) -> int | None:
    """Give the number of the character device behind a descriptor; None for anything else. Raises OSError."""
    found = os.stat(name, dir_fd=directory)
    return found.st_rdev if found.st_rdev and stat.S_ISCHR(found.st_mode) else None


def lives(pid: int) -> bool:
    """Say whether a process has this pid, also where /proc hides it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def ran_ns(pid: int) -> int | None:
    """Give the CPU time that a process has used so far, all threads; None where that can't be read."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)  # the kernel's own encoding of a process's CPU clock
    except (OSError, OverflowError):
        return None


class Held(NamedTuple):
    """What a process held when it was searched, and how long it had run by then."""

    ran_ns: int | None
    open: tuple[tuple[str, str, int, Kind], ...]


@dataclass(slots=True)
class Look:
    """What was found of one process: texts with their device and moment, or the error, and what else it holds."""

    pid: int
    files: list[tuple[str, int, bytes, float]] = field(default_factory=list)
    error: int = 0
    hidden: bool = False
    holds: set[Kind] = field(default_factory=set)
    asleep: bool = False


class DrmReader:
    """Linux: every DRM driver that tells time in fdinfo. `proc` and `sys` are where those file systems are."""

    name = "drm-fdinfo"
    reads = "the engine time of each DRM client, from /proc/PID/fdinfo"

    def __init__(
        self,
        proc: str = "/proc",
        sys: str = "/sys",
        *,
        device_of: Callable[[str, int], int | None] = device_number,
        lives: Callable[[int], bool] = lives,
        ran_ns: Callable[[int], int | None] = ran_ns,
    ) -> None:
        self._proc, self._sys = proc, sys
        self._device_of, self._lives, self._ran_ns = device_of, lives, ran_ns
        self._held: dict[ProcessKey, Held] = {}
        self._majors: dict[int, Kind | None] = dict(FIXED_MAJORS)
        self._kinds: dict[int, Kind | None] = {}
        self._dxg: int | None = None
        self._drivers: dict[int, str] = {}
        self._power = _Power(sys)
        self._learn_majors()

    def hindrance(self) -> Unknown | None:
        if not os.path.isdir(f"{self._proc}/self/fdinfo"):
            return Unknown(f"{self._proc}/PID/fdinfo is not there: this needs Linux with /proc.")
        for folder in ("drm", "accel"):
            with suppress(OSError):
                if any(
                    name.startswith(("card", "renderD", "accel")) for name in os.listdir(f"{self._sys}/class/{folder}")
                ):
                    return None
        return Unknown("no GPU has a kernel driver here (/sys/class/drm is empty). Install the driver of the GPU.")

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        t, looks = self.raw(members)
        counters: list[Counter] = []
        unknown: dict[int, Unknown] = {}
        elsewhere: list[tuple[int, str]] = []
        for look in looks:
            pid = look.pid
            if look.hidden:
                unknown[pid] = Unknown(f"/proc/{pid} is hidden from this user (hidepid). Run as its owner or as root.")
            elif look.error and look.error not in GONE:
                unknown[pid] = denied(pid, look.error)
            elif "wsl" in look.holds:
                unknown[pid] = WSL
            elsewhere.extend((pid, kind) for kind in look.holds - {"wsl"})
            for _, device, text, read_s in look.files:
                client = client_of(pid, parse_fdinfo(text), _number(device), self._driver(device), read_s)
                counters.extend(client.counters)
                if client.unknown is not None:
                    unknown.setdefault(pid, client.unknown)
                if client.elsewhere:
                    elsewhere.append((pid, client.elsewhere))
        return GpuReading(
            t,
            tuple(counters),
            unknown=unknown,
            gone=frozenset(look.pid for look in looks if look.error in GONE and not look.hidden),
            elsewhere=gather(elsewhere),
            asleep=frozenset(look.pid for look in looks if look.asleep),
        )

    def close(self) -> None:
        """Nothing stays open between readings."""

    def raw(self, members: Collection[ProcessKey]) -> tuple[float, list[Look]]:
        """Read the members once, untouched."""
        self._power.begin_round()
        self._held = {key: self._held[key] for key in members if key in self._held}
        return time.monotonic(), [self._look(key) for key in members]

    def recording(self, raws: Sequence[tuple[float, list[Look]]]) -> Mapping[str, bytes]:
        """Give `drm.fdinfo`; empty where no process held anything and all could be read."""
        if not any(look.files or look.error or look.holds for _, looks in raws for look in looks):
            return {}
        return {"drm.fdinfo": b"".join(part for t, looks in raws for part in _written(t - raws[0][0], looks))}

    def _look(self, key: ProcessKey) -> Look:
        look = Look(key.pid)
        try:
            for base, name, device, kind in self._open_devices(key):
                if kind == "drm":
                    self._read_file(look, f"{base}/fdinfo/{name}", name, device)
                else:
                    look.holds.add(kind)
        except OSError as fault:
            look.error = fault.errno or errno.EIO
            look.hidden = look.error in GONE and self._lives(key.pid)
            self._held.pop(key, None)
        return look

    def _open_devices(self, key: ProcessKey) -> tuple[tuple[str, str, int, Kind], ...]:
        ran_ns = self._ran_ns(key.pid)  # before the search: what it opens meanwhile is found the next time
        held = self._held.get(key)
        if held is None or ran_ns is None or held.ran_ns != ran_ns:
            held = self._held[key] = Held(ran_ns, tuple(self._devices(key.pid)))
        return held.open

    def _devices(self, pid: int) -> Iterator[tuple[str, str, int, Kind]]:
        """Yield (directory of the process or thread, descriptor, device number, kind) of each GPU that is open."""
        for base in self._tables(pid):
            try:
                directory = os.open(f"{base}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except (FileNotFoundError, ProcessLookupError):
                if "/task/" in base:  # that thread has ended; another one may live
                    continue
                raise
            try:
                names = os.listdir(directory)
                for name in names:
                    try:
                        device = self._device_of(name, directory)
                    except FileNotFoundError:  # closed in between
                        continue
                    if device is None:
                        continue
                    kind = self._kinds[device] if device in self._kinds else self._kind(device)
                    if kind is not None:
                        yield base, name, device, kind
            finally:
                os.close(directory)
            if names:
                return

    def _tables(self, pid: int) -> Iterator[str]:
        """Yield where descriptors are listed: with the first thread, or with any other once that one has ended."""
        yield f"{self._proc}/{pid}"
        threads = os.listdir(f"{self._proc}/{pid}/task")
        yield from (f"{self._proc}/{pid}/task/{thread}" for thread in threads if thread != str(pid))

    def _read_file(self, look: Look, path: str, name: str, device: int) -> None:
        if self._driver(device) in WAKES and self._power.asleep(device):
            look.asleep = True
            return
        try:
            text = _content(path)
        except FileNotFoundError:  # closed in between
            return
        self._power.was_read(device)
        look.files.append((name, device, text, time.monotonic()))

    def _kind(self, device: int) -> Kind | None:
        major = os.major(device)
        if major not in self._majors:  # a driver that was loaded since
            self._learn_majors()
        kind: Kind | None = "wsl" if device == self._dxg else self._majors.setdefault(major, None)
        self._kinds[device] = kind
        return kind

    def _learn_majors(self) -> None:
        with suppress(OSError, ValueError, IndexError):
            for line in _content(f"{self._proc}/devices").decode("ascii", "replace").partition("Block")[0].splitlines():
                number, _, name = line.strip().partition(" ")
                if number.isdigit() and int(number) not in FIXED_MAJORS:
                    self._majors[int(number)] = KINDS.get(name)
        with suppress(OSError, ValueError, IndexError):
            for line in _content(f"{self._proc}/misc").decode("ascii", "replace").splitlines():
                minor, name = line.split()
                if name == "dxg":
                    self._dxg = os.makedev(10, int(minor))

    def _driver(self, device: int) -> str:
        if device not in self._drivers:
            try:
                link = os.readlink(f"{self._sys}/dev/char/{_number(device)}/device/driver")
            except OSError:
                link = ""
            self._drivers[device] = os.path.basename(link)
        return self._drivers[device]


class _Power:
    """Whether a device sleeps, and whether anybody but us kept it awake since it was looked at."""

    def __init__(self, sys: str) -> None:
        self._sys = sys
        self._active_ms: dict[int, int | None] = {}
        self._read: set[int] = set()
        self._answers: dict[int, bool] = {}

    def begin_round(self) -> None:
        """Forget the answers of the last reading."""
        self._answers.clear()

    def asleep(self, device: int) -> bool:
        """Say whether it sleeps and did nothing since the last look; one that worked in between is worth waking."""
        if device not in self._answers:
            self._answers[device] = self._look(device)
        return self._answers[device]

    def _look(self, device: int) -> bool:
        before_ms = self._active_ms.get(device)
        active_ms = self._active_ms[device] = self._value(device, "runtime_active_time")
        ours_ms = 0
        if device in self._read:
            ours_ms = (self._value(device, "autosuspend_delay_ms") or 0) + OUR_WAKE_MS
        self._read.discard(device)
        if self._text(device, "runtime_status") != b"suspended":
            return False
        return before_ms is None or active_ms is None or active_ms - before_ms <= ours_ms

    def was_read(self, device: int) -> None:
        self._read.add(device)

    def _value(self, device: int, name: str) -> int | None:
        text = self._text(device, name)
        return int(text) if text.isdigit() else None

    def _text(self, device: int, name: str) -> bytes:
        try:
            return _content(f"{self._sys}/dev/char/{_number(device)}/device/power/{name}").strip()
        except OSError:
            return b""


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _content(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))  # asked on every system what hinders it
    try:
        parts = []
        while (size := sum(map(len, parts))) < MOST_BYTES and (part := os.read(file, MOST_BYTES - size)):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def _written(since_s: float, looks: Sequence[Look]) -> Iterator[bytes]:
    yield f"#@ reading t={since_s:.3f}\n".encode()
    for look in looks:
        pid = look.pid
        if look.error:
            number = errno.EACCES if look.hidden else look.error
            yield f"#@ error pid={pid} path=fdinfo errno={number}\n".encode()
        for kind in sorted(look.holds):
            yield f"#@ holds pid={pid} source={kind}\n".encode()
        if look.asleep:
            yield f"#@ asleep pid={pid}\n".encode()
        for name, device, text, _ in look.files:
            yield f"#@ file pid={pid} fd={name} rdev={_number(device)}\n".encode() + text.rstrip(b"\n") + b"\n"
        if not (look.error or look.holds or look.asleep or look.files):
            yield f"#@ none pid={pid}\n".encode()
