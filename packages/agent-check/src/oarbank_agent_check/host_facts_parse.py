"""What systems say of their GPUs, as names and versions: the texts of drivers and tools go in, a few words come out.

Written from documentation and published output; on no machine with a GPU was it ever run. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

NVIDIA_VENDOR = "0x10de"
_VERSION = re.compile(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s")
_MODEL = re.compile(r"^Model:\s*(\S.*?)\s*$", re.MULTILINE)
MOST = 200  # characters of a name


def nvidia_driver(text: str) -> str | None:
    """Read `/proc/driver/nvidia/version`: the version of the kernel module."""
    found = _VERSION.search(text)
    return None if found is None else f"nvidia {found[1]}"


def nvidia_name(text: str) -> str | None:
    """Read `/proc/driver/nvidia/gpus/*/information`."""
    found = _MODEL.search(text)
    return None if found is None else found[1][:MOST]


def drm_name(files: Mapping[str, str]) -> str | None:
    """Name a card by `vendor`, `device` and `uevent` of its device; None without ids, as for a virtual one."""
    vendor, device = files.get("vendor", "").strip(), files.get("device", "").strip()
    if not vendor or not device:
        return None
    driver = next((line[7:] for line in files.get("uevent", "").splitlines() if line.startswith("DRIVER=")), "unknown")
    return f"{driver} {vendor.removeprefix('0x')}:{device.removeprefix('0x')}"[:MOST]


def mac_names(text: str) -> list[str]:
    """Read `system_profiler -json SPDisplaysDataType`: each GPU with its number of cores."""
    names = []
    for entry in _entries(text, "SPDisplaysDataType"):
        name = entry.get("sppci_model") or entry.get("_name")
        if isinstance(name, str) and name:
            cores = entry.get("sppci_cores")
            names.append((f"{name}, {cores} cores" if isinstance(cores, str) and cores else name)[:MOST])
    return names


def windows_gpus(text: str) -> tuple[list[str], str | None]:
    """Read the list of `Win32_VideoController` as JSON (one object where there is one): names, and all versions."""
    names, versions = [], []
    for entry in _entries(text, None):
        name, version = entry.get("Name"), entry.get("DriverVersion")
        if isinstance(name, str) and name:
            names.append(name[:MOST])
            versions += [version[:MOST]] if isinstance(version, str) and version else []
    return names, ", ".join(sorted(set(versions))) or None


def _entries(text: str, key: str | None) -> Iterable[Mapping[str, object]]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if key is not None:
        value = value.get(key) if isinstance(value, dict) else None
    listed = value if isinstance(value, list) else [value]
    return [entry for entry in listed if isinstance(entry, dict)]
