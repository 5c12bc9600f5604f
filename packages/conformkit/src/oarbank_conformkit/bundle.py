"""Read a module's directory: its manifest, its fixtures, its goldens. The files, never the module.

Nothing in the directory is imported or run here. A directory that is none, a manifest that is no TOML, fixtures that
cannot be read: those are the caller's to mend (`UsageError`). What the manifest says wrongly is evidence and goes on
to be judged.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_conformkit.faults import UsageError
from oarbank_conformkit.fixtures import Fixtures, fixtures
from oarbank_conformkit.goldens import BadGolden, Golden, golden
from oarbank_conformkit.module import FIXTURES, MANIFEST, Module, module
from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.judge import judge_value
from oarbank_sdk.contracts.rules import warnings

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_KEYS = re.compile(r"\('[^']*'(?:, '[^']*')*,?\)")  # how tomllib shows a table: as a tuple of its keys


@dataclass(frozen=True, slots=True)
class Bundle:
    """What stands in a module's directory."""

    shown: str  # the directory as the caller named it
    path: str  # absolute
    manifest: dict[str, Any]
    manifest_faults: tuple[Fault, ...]
    module: Module | None  # None: the manifest does not keep its contract
    goldens: tuple[Golden | BadGolden, ...]
    fixtures: Fixtures | None  # None: there is no such file
    manifest_warnings: tuple[Fault, ...] = ()
    missing_schema: str | None = None  # the result's schema, where the manifest names a file that is not there


def read(directory: str, fixtures_file: str | None = None) -> Bundle:
    """Return what is there. Raises `UsageError` for a directory or file that the caller must mend."""
    folder = Path(directory)
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        which = f"Give {folder.parent}" if folder.name == MANIFEST else f"Give the one that holds {MANIFEST}"
        raise UsageError(f"{directory}: must be a module's directory; found {what}. {which}.")
    manifest = _manifest(folder / MANIFEST, directory)
    faults = tuple(judge_value("module-manifest-1", manifest))
    facts = None if faults else module(manifest)
    return Bundle(
        shown=directory,
        path=str(folder.resolve()),
        manifest=manifest,
        manifest_faults=faults,
        module=facts,
        goldens=_goldens(folder, facts.goldens if facts else None),
        fixtures=_fixtures(folder, fixtures_file),
        manifest_warnings=() if faults else tuple(warnings("module-manifest-1", manifest)),
        missing_schema=None if faults else _missing_schema(folder, manifest),
    )


def _manifest(path: Path, directory: str) -> dict[str, Any]:
    if path.is_dir():
        raise UsageError(
            f"{directory}: {MANIFEST} must be a file; found a directory of that name. Put the manifest there."
        )
    if not path.is_file():
        raise UsageError(f"{directory}: must hold {MANIFEST}; found no such file. Give a module's directory.")
    data = _bytes(path, MANIFEST)
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


def _bytes(path: Path, shown: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageError(f"{shown}: must be readable; {exc.strerror or exc}. Check the file and its rights.") from None


def _fixtures(folder: Path, given: str | None) -> Fixtures | None:
    if given is not None:
        return fixtures(given, _bytes(Path(given), given), str(Path(given).resolve().parent))
    path = folder / FIXTURES
    return fixtures(FIXTURES, _bytes(path, FIXTURES), str(folder.resolve())) if path.exists() else None


def _missing_schema(folder: Path, manifest: dict[str, Any]) -> str | None:
    named = manifest["results"].get("schema")
    try:
        return None if named is None or (folder / named).is_file() else named
    except (OSError, ValueError):  # a name that no file can have
        return named


def _goldens(folder: Path, pattern: str | None) -> tuple[Golden | BadGolden, ...]:
    """The goldens in the order of their names; a pattern that leads out of the bundle finds nothing."""
    if pattern is None:
        return ()
    try:
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
    except (ValueError, NotImplementedError, IndexError):  # absolute, empty or broken
        return (BadGolden(pattern, "must be a glob in the bundle; found none"),)
    return tuple(_golden(folder, path) for path in found)


def _golden(folder: Path, path: Path) -> Golden | BadGolden:
    shown = str(path.relative_to(folder))
    try:
        if not path.resolve().is_relative_to(folder.resolve()):
            return BadGolden(shown, "must lie in the bundle; found a path that leads out of it")
        return golden(shown, path.read_bytes())
    except OSError as exc:
        return BadGolden(shown, f"must be readable; {exc.strerror or exc}")
