"""Read the manifest in a module's directory, and no more than that: nothing there is imported or run.

A directory that is none, or a manifest that is no TOML, is the caller's to mend (`UsageError`). What the manifest says
wrongly is evidence: it is handed on as the faults that the contract finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.module import MANIFEST, Module, module
from oarbank_agent_check.jobs.toml_file import file_bytes, read_toml
from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.judge import judge_value

__all__ = ["Manifest", "file_bytes", "read_manifest", "read_runnable"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a module's directory says of the module."""

    shown: str  # the directory as the caller named it
    folder: Path
    document: dict[str, Any]
    faults: tuple[Fault, ...]
    module: Module | None  # None: the manifest does not keep its contract


def read_manifest(directory: str) -> Manifest:
    """Return the manifest in a directory. Raises `UsageError` for a directory or file that the caller must mend."""
    folder = Path(directory)
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        which = f"Give {folder.parent}" if folder.name == MANIFEST else f"Give the one that holds {MANIFEST}"
        raise UsageError(f"{directory}: must be a module's directory; found {what}. {which}.")
    document = _document(folder / MANIFEST, directory)
    faults = tuple(judge_value("module-manifest-1", document))
    return Manifest(directory, folder, document, faults, None if faults else module(document))


def read_runnable(directory: str, platform: str) -> tuple[Manifest, Module]:
    """Return the manifest in a directory, and its facts, of a module that may run here. Raises `UsageError`."""
    found = read_manifest(directory)
    if found.module is None:
        raise UsageError(found.faults[0].line(MANIFEST))
    if platform not in found.module.platforms:
        listed = ", ".join(found.module.platforms)
        raise UsageError(f"{MANIFEST}: /requires/platforms: must list this host, {platform}; found {listed}.")
    return found, found.module


def _document(path: Path, directory: str) -> dict[str, Any]:
    if path.is_dir():
        raise UsageError(
            f"{directory}: {MANIFEST} must be a file; found a directory of that name. Put the manifest there."
        )
    if not path.is_file():
        raise UsageError(f"{directory}: must hold {MANIFEST}; found no such file. Give a module's directory.")
    return read_toml(path, MANIFEST)[1]
