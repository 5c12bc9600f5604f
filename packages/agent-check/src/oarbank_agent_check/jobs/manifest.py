"""Read the manifest in a module's directory, and no more than that: nothing there is imported or run.

A directory that is none, or a manifest that is no TOML, is the caller's to mend (`UsageError`). What the manifest says
wrongly is evidence: it is handed on as the faults that the contract finds.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.module import MANIFEST, Module, module
from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.judge import judge_value

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_KEYS = re.compile(r"\('[^']*'(?:, '[^']*')*,?\)")  # how tomllib shows a table: as a tuple of its keys


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


def file_bytes(path: Path, shown: str) -> bytes:
    """Return a file's bytes. Raises `UsageError` for one that cannot be read; `shown` is its name in the line."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as exc:  # ValueError: a name that no file can have
        reason = getattr(exc, "strerror", None) or exc
        raise UsageError(f"{shown}: must be readable; {reason}. Check the file and its rights.") from None


def _document(path: Path, directory: str) -> dict[str, Any]:
    if path.is_dir():
        raise UsageError(
            f"{directory}: {MANIFEST} must be a file; found a directory of that name. Put the manifest there."
        )
    if not path.is_file():
        raise UsageError(f"{directory}: must hold {MANIFEST}; found no such file. Give a module's directory.")
    data = file_bytes(path, MANIFEST)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        byte = f"the byte 0x{data[exc.start]:02x}"
        raise UsageError(f"{MANIFEST}: line {line}: must be UTF-8; found {byte}. Fix the file's encoding.") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(_not_toml(text, exc)) from None
    except RecursionError:
        raise UsageError(f"{MANIFEST}: line 1: must be TOML; found too many levels. Fix the nesting.") from None


def _not_toml(text: str, exc: tomllib.TOMLDecodeError) -> str:
    place = _PLACE.search(str(exc))
    why = _KEYS.sub(lambda keys: "[" + ".".join(re.findall(r"'([^']*)'", keys[0])) + "]", _PLACE.sub("", str(exc)))
    lines = text.splitlines() or [""]
    line = min(int(place[1]), len(lines)) if place and place[1] else len(lines)
    shown = lines[line - 1].strip()
    return f"{MANIFEST}: line {line}: must be TOML; found {shown[:80]!r}. Fix it: {why[:1].lower()}{why[1:]}."
