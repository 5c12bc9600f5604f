"""What a certified level depends on, read from this machine: system, driver, GPUs, a module's files and its model.

Reads and hands values on; it decides nothing. What can't be read is left out, and never guessed.

Never run: macOS; written from documentation.
Never run: Windows; written from documentation.
Never run: NVIDIA GPUs; tested on made answers.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from oarbank_agent_check import host_facts_parse as parse
from oarbank_agent_check.certificate import HostFacts, Model, WorkFacts
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, Stage

TOOL_LIMIT_S = 30.0
SAMPLES, SAMPLE_BYTES = 64, 1 << 16
"""Of a model's file so many even parts are read: gigabytes must not be read at every start of a job."""

MOST_TEXT = 1 << 16


def host_facts(host: Host, root: Path = Path("/")) -> HostFacts:
    """Read the machine; `root` is where a test has put its files."""
    told = platform.uname()
    if sys.platform == "darwin":
        gpus, driver = parse.mac_names(_output("system_profiler", "-json", "SPDisplaysDataType")), None
    elif sys.platform == "win32":
        query = "Get-CimInstance Win32_VideoController | Select-Object Name, DriverVersion | ConvertTo-Json"
        gpus, driver = parse.windows_gpus(_output("powershell", "-NoProfile", "-Command", query))
    else:
        gpus, driver = linux_gpus(root)
    return HostFacts(
        platform=host.platform,
        os=" ".join(part for part in (told.system, told.release, told.version) if part),
        driver=driver,
        gpus=tuple(sorted(gpus)),
        kit=version("oarbank-agent-check"),
    )


def linux_gpus(root: Path) -> tuple[list[str], str | None]:
    """Give the names of the GPUs under `root`, and the version of a driver that is not the kernel's own."""
    nvidia = root / "proc" / "driver" / "nvidia"
    texts = [_text(path) for path in sorted(nvidia.glob("gpus/*/information"))]
    names = [name for text in texts if (name := parse.nvidia_name(text)) is not None]
    for card in sorted((root / "sys" / "class" / "drm").glob("card[0-9]*")):
        if not card.name.removeprefix("card").isdigit():  # a connector
            continue
        files = {name: _text(card / "device" / name) for name in ("vendor", "device", "uevent")}
        if names and files["vendor"].strip() == parse.NVIDIA_VENDOR:
            continue  # named above already
        name = parse.drm_name(files)
        if name is not None:
            names.append(name)
    return names, parse.nvidia_driver(_text(nvidia / "version"))


def work_facts(module: Module, folder: Path, stage: Stage, payload: Mapping[str, Any], data: Path) -> WorkFacts:
    """Read what a module's work consists of. Raises `UsageError` for files that can't be read.

    The model is what the payload names under `model`, a file or folder in `models` of the module's data folder.
    """
    name = payload.get("model")
    model = None
    if isinstance(name, str) and name:
        place = data / "models" / name
        inside = not os.path.isabs(name) and ".." not in Path(name).parts
        model = Model(name, _digest(place, whole=False) if inside and place.exists() else None)
    digest = _digest(folder, whole=True)
    return WorkFacts(module.id, module.version, digest, stage.name, model)


def _digest(place: Path, *, whole: bool) -> str:
    """SHA-256 over names, sizes and bytes of a file, or of a folder's; hidden ones and compiled Python are left out."""
    found = hashlib.sha256()
    try:
        for path in _files(place):
            size = path.stat().st_size
            name = path.relative_to(place).as_posix() if path != place else ""
            found.update(f"{len(name.encode())} {size} ".encode() + name.encode())
            with path.open("rb") as file:
                for part in _parts(size, whole=whole):
                    file.seek(part)
                    found.update(file.read(SAMPLE_BYTES))
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise UsageError(f"{place}: its files must be readable; {why}. Check them and their rights.") from None
    return found.hexdigest()


def _files(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for path in sorted(place.rglob("*")):
        parts = path.relative_to(place).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path


def _parts(size: int, *, whole: bool) -> Iterator[int]:
    if whole or size <= SAMPLES * SAMPLE_BYTES:
        yield from range(0, size, SAMPLE_BYTES)
    else:
        yield from (i * (size - SAMPLE_BYTES) // (SAMPLES - 1) for i in range(SAMPLES))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_TEXT).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=TOOL_LIMIT_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", errors="replace")
