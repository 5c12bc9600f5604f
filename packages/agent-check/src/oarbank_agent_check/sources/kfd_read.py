"""Reads /sys/class/kfd/kfd/proc/PID, where the kernel tells of ROCm processes: a few small files for each of them.

The file of this source that touches Linux.

Never run: AMD GPUs with ROCm; tested on a made /sys.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Collection, Mapping, Sequence

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources import kfd_parse

FIRST_NAMESPACE = "pid:[4026531836]"
"""The machine's own pid namespace, by its fixed number [kernel include/linux/proc_ns.h, PROC_PID_INIT_INO]."""


class KfdReader:
    """Linux with amdgpu: what ROCm processes did, as far as the kernel counts it. `sys` is where that is mounted."""

    name = "kfd"
    reads = "the open queues and the copy time of ROCm processes, from /sys/class/kfd"

    def __init__(self, sys: str = "/sys", *, namespace: str | None = None) -> None:
        self._folder = f"{sys}/class/kfd/kfd/proc"
        self._path = "/sys/class/kfd/kfd/proc"
        self._namespace = namespace

    def hindrance(self) -> Unknown | None:
        if not os.path.isdir(self._folder):
            return Unknown("no ROCm device is here (/sys/class/kfd/kfd/proc is not there).")
        namespace = self._namespace if self._namespace is not None else _own_namespace()
        if namespace != FIRST_NAMESPACE:
            return Unknown("ROCm lists processes by the host's pids, and this runs in a container. Run on the host.")
        return None

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        t = time.monotonic()
        counters: list[Counter] = []
        unknown: dict[int, Unknown] = {}
        for key in members:
            try:
                more, fault = kfd_parse.judge(key.pid, self._files(key.pid))
            except OSError as error:
                more, fault = (), _denied(key.pid, error)
            counters.extend(more)
            if fault is not None:
                unknown[key.pid] = fault
        return GpuReading(t, tuple(counters), unknown=unknown)

    def close(self) -> None:
        """Nothing stays open between readings."""

    def raw(self, members: Collection[ProcessKey]) -> tuple[float, dict[str, str]]:
        """Read the members once, untouched; what can't be read is left out."""
        t, found = time.monotonic(), {}
        for key in members:
            try:
                files = self._files(key.pid)
            except OSError:
                continue
            found |= {f"{self._path}/{key.pid}/{name}": text for name, text in files.items()}
        return t, found

    def recording(self, raws: Sequence[tuple[float, dict[str, str]]]) -> Mapping[str, bytes]:
        """Give `kfd.json`; empty where no process was listed."""
        if not any(files for _, files in raws):
            return {}
        rows = [{"t_s": round(t - raws[0][0], 3), "sysfs": files} for t, files in raws]
        return {"kfd.json": kfd_parse.written(rows)}

    def _files(self, pid: int) -> dict[str, str]:
        """Give the files that are judged, by their path in the process's directory; empty when it is not listed."""
        folder = f"{self._folder}/{pid}"
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, ProcessLookupError):
            return {}
        files = {name: _text(f"{folder}/{name}") for name in names if name.startswith("sdma_")}
        if "queues" in names:
            files |= {f"queues/{queue}/type": "" for queue in os.listdir(f"{folder}/queues")}
        return files


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read(64)


def _own_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _denied(pid: int, error: OSError) -> Unknown | None:
    if error.errno in (errno.ENOENT, errno.ESRCH, errno.ENODEV):  # it ended in between
        return None
    return Unknown(f"the ROCm files of pid {pid} could not be read ({error.strerror}). Run as its owner or as root.")
