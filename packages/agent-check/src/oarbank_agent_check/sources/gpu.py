"""Which GPU readers there are: all of this system, those other packages bring, or the one that is asked for.

Readers are imported when they are asked for, so a system never loads what belongs to another one. A reader that can't
be made here is no reason to fail: it stays in the list with its hindrance. Only a spec that names nothing is an error.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from oarbank_agent_check.gpu_readings import GpuReader, GpuReading
from oarbank_agent_check.readings import ProcessKey, Unknown

ENTRY_POINTS = "oarbank_agent_check.gpu_readers"
"""The entry point group of readers that other packages bring: each names a class without constructor arguments."""

VARIABLE = "OARBANK_GPU_READER"
"""The environment variable whose spec is used where none is given: for a test, or a vendor's own reader."""

_HERE = "oarbank_agent_check.sources."
OWN = {
    "drm-fdinfo": _HERE + "drm_read:DrmReader",
    "kfd": _HERE + "kfd_read:KfdReader",
    "nvml": _HERE + "nvml_read:NvmlReader",
    "ioreg": _HERE + "ioreg_read:IoregReader",
    "pdh": _HERE + "pdh_read:PdhReader",
}
OF_SYSTEM = {"linux": ("drm-fdinfo", "kfd", "nvml"), "darwin": ("ioreg",), "win32": ("pdh", "nvml")}
"""Windows reads NVIDIA's devices through PDH too; NVML only says who uses one in TCC mode, which PDH doesn't show."""


class UnknownReader(ValueError):
    """A spec that names no reader; the text is the one line to show."""


def readers(spec: str | None = None) -> list[GpuReader]:
    """Give the readers that `spec` names, else `$OARBANK_GPU_READER`, else all of this system and of other packages.

    A spec is a name (`drm-fdinfo`, `kfd`, `nvml`, `ioreg`, `pdh`, or an entry point's) or `module:Class`.
    Raises UnknownReader.
    """
    spec = spec if spec is not None else os.environ.get(VARIABLE) or None
    others = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if spec is None:
        names = next((own for system, own in OF_SYSTEM.items() if sys.platform.startswith(system)), ())
        return [*(_own(name) for name in names), *(_foreign(point) for point in others.values())]
    if spec in OWN:
        return [_own(spec)]
    if spec in others:
        return [_foreign(others[spec])]
    if ":" in spec:
        return [_named(spec)]
    known = ", ".join([*OWN, *others])
    raise UnknownReader(f"GPU reader: must be {known}, or module:Class; found {spec[:80]!r}. Check ${VARIABLE} too.")


class NoReader:
    """Stands for a reader that could not be made: nothing here can be read with it."""

    reads = "nothing"

    def __init__(self, name: str, fault: Exception) -> None:
        self.name = name
        self._why = Unknown(f"the reader {name} can't be loaded ({type(fault).__name__}: {str(fault)[:120]}).")

    def hindrance(self) -> Unknown | None:
        return self._why

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        return GpuReading(t=0.0, unknown=dict.fromkeys((key.pid for key in members), self._why))

    def close(self) -> None:
        """Nothing was opened."""


def _load(path: str) -> GpuReader:
    module, _, name = path.partition(":")
    return _whole(getattr(importlib.import_module(module), name)())


def _whole(made: Any) -> GpuReader:
    """What a class made, where it is a reader. Raises TypeError."""
    lacks = [name for name in ("name", "reads", "hindrance", "read", "close") if not hasattr(made, name)]
    if lacks:
        raise TypeError(f"it makes no GPU reader, for it has no {lacks[0]!r}")
    return made


def _own(name: str) -> GpuReader:
    try:
        return _load(OWN[name])
    except (ImportError, OSError) as fault:  # a system library that is not there
        return NoReader(name, fault)


def _foreign(point: EntryPoint) -> GpuReader:
    try:
        return _whole(point.load()())
    except Exception as fault:  # other people's code, whatever it does
        return NoReader(point.name, fault)


def _named(spec: str) -> GpuReader:
    try:
        return _load(spec)
    except Exception as fault:  # the same
        why = f"{type(fault).__name__}: {str(fault)[:120]}"
        raise UnknownReader(f"GPU reader {spec[:80]!r}: must be module:Class that can be loaded; {why}.") from None
