"""Read a module's directory: its manifest, its fixtures, its goldens. The files, never the module.

Nothing in the directory is imported or run here. A directory that is none, a manifest that is no TOML, fixtures that
cannot be read: those are the caller's to mend (`UsageError`). What the manifest says wrongly is evidence and goes on
to be judged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.manifest import file_bytes, read_manifest
from oarbank_agent_check.jobs.module import BUNDLE, FIXTURES, Module
from oarbank_conformkit.fixtures import Fixtures, fixtures
from oarbank_conformkit.goldens import BadGolden, Golden, golden
from oarbank_conformkit.result_schema import ResultSchema, result_schema
from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.rules import warnings

_INSIDE = f"{BUNDLE}/"


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
    result_schema: ResultSchema | None = None  # where the file is there
    missing_programs: tuple[str, ...] = ()  # what the manifest starts and cannot, each in a clause
    missing_params: tuple[str, ...] = ()  # schemas of operations, likewise


def read(directory: str, fixtures_file: str | None = None) -> Bundle:
    """Return what is there. Raises `UsageError` for a directory or file that the caller must mend."""
    found = read_manifest(directory)
    folder, manifest, facts = found.folder, found.document, found.module
    return Bundle(
        shown=directory,
        path=str(folder.resolve()),
        manifest=manifest,
        manifest_faults=found.faults,
        module=facts,
        goldens=_goldens(folder, facts.goldens if facts else None),
        fixtures=_fixtures(folder, fixtures_file),
        manifest_warnings=() if found.faults else tuple(warnings("module-manifest-1", manifest)),
        missing_schema=None if found.faults else _missing_schema(folder, manifest),
        result_schema=None if found.faults else _result_schema(folder, manifest),
        missing_programs=() if found.faults else tuple(_missing_programs(folder, manifest)),
        missing_params=() if found.faults else tuple(_missing_params(folder, manifest)),
    )


def _missing_programs(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    """What stands on a command line as a file of the bundle and is none, or is the program and cannot be run."""
    for name in ("runner", "coordinator"):
        told = manifest.get(name)
        for index, word in enumerate([] if told is None else told["exec"]):
            if not word.startswith(_INSIDE):
                continue
            path, at = folder / word.removeprefix(_INSIDE), f"/{name}/exec/{index}"
            if not _is_file(path) and not (index > 0 and path.is_dir()):
                yield f"{at}: must be a file in the bundle; found none at {word.removeprefix(_INSIDE)}"
            elif index == 0 and not os.access(path, os.X_OK):
                yield f"{at}: must be a program; found {word.removeprefix(_INSIDE)}, which may not be executed"


def _missing_params(folder: Path, manifest: dict[str, Any]) -> Iterator[str]:
    for index, operation in enumerate(manifest.get("operations", [])):
        named = operation.get("params_schema")
        if named is not None and not _is_file(folder / named):
            yield f"/operations/{index}/params_schema: must be a file in the bundle; found none at {named}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _fixtures(folder: Path, given: str | None) -> Fixtures | None:
    if given is not None:
        return fixtures(given, file_bytes(Path(given), given), str(Path(given).resolve().parent))
    path = folder / FIXTURES
    return fixtures(FIXTURES, file_bytes(path, FIXTURES), str(folder.resolve())) if path.exists() else None


def _missing_schema(folder: Path, manifest: dict[str, Any]) -> str | None:
    named = manifest["results"].get("schema")
    try:
        return None if named is None or (folder / named).is_file() else named
    except (OSError, ValueError):  # a name that no file can have
        return named


def _result_schema(folder: Path, manifest: dict[str, Any]) -> ResultSchema | None:
    named = manifest["results"].get("schema")
    if named is None or not _is_file(folder / named):
        return None
    try:
        if not (folder / named).resolve().is_relative_to(folder.resolve()):
            return ResultSchema(named, "must lie in the bundle; found a path that leads out of it")
        return result_schema(named, (folder / named).read_bytes())
    except OSError as exc:
        return ResultSchema(named, f"must be readable; {exc.strerror or exc}")


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
