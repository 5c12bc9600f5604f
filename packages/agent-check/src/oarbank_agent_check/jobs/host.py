"""Where this runs: the facts of the machine that a plan, an environment and a report need.

Reads the machine once and hands a value on; it decides nothing.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass

_OS = {"linux": "linux", "darwin": "darwin", "win32": "windows"}
_ARCH = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Host:
    """One machine, as the contracts name it."""

    platform: str  # <os>-<arch>, such as linux-amd64
    python: str  # the interpreter that runs this, an absolute path; the token `python` of a manifest means it
    python_version: str
    cpus: int  # processors this process may use, at least 1
    gpu_apis: frozenset[str] | None = None  # None: nobody has looked


def this_host() -> Host:
    """Return the facts of the machine that runs this."""
    system = _OS.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    affinity = getattr(os, "sched_getaffinity", None)
    return Host(
        platform=f"{system}-{_ARCH.get(machine, machine)}",
        python=sys.executable,
        python_version=platform.python_version(),
        cpus=len(affinity(0)) if affinity else os.cpu_count() or 1,
    )
