"""The directories of one run, as an agent lays them out, and the files that pass between kit and runner.

A run gets a fresh scratch directory that holds its workdir, its data directory and nothing else; it is removed with
all that the runner left. Writes that the disk refuses are the kit's fault (`KitError`). It must never judge what it
reads.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from oarbank_conformkit.control_document import merged
from oarbank_conformkit.faults import KitError
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.specs import Task
from oarbank_sdk import strictjson
from oarbank_sdk.control import replace_text

RESULT_LIMIT = 64 << 20
"""Bytes of a document that are read at most: far above any inline limit, and still no danger to the kit."""


class BadFixture(Exception):
    """A task cannot be laid out as its author wrote it; the text is one line for people."""


class Scratch:
    """The directories of one run; a context manager that removes them."""

    def __init__(self) -> None:
        self._seq = 0
        try:
            self.root = Path(tempfile.mkdtemp(prefix="oarbank-conform-")).resolve()
            self.data = self.root / "data"
            self.workdir = self.root / "work"
            for folder in (self.data / "tmp", self.workdir / "tmp"):
                folder.mkdir(parents=True)
        except OSError as exc:
            raise KitError(f"conform: a temporary directory must be made; {exc}. Free some space.") from None

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- what the kit writes ---------------------------------------------------------------------------

    def grant(self, folder: Path, fixtures: Fixtures | None) -> None:
        """Write the files of settings, tools and folders into `folder`."""
        told = Fixtures("") if fixtures is None else fixtures
        folders = {name: str(Path(told.folder) / path) for name, path in told.folders.items()}
        documents = {"settings": told.settings, "tools": told.tools, "folders": folders}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise KitError(f"conform: {folder} must be made; {exc}. Free some space.") from None
        for name, document in documents.items():
            _write(folder / f"{name}.json", document)

    def lay_out(self, spec: Mapping[str, Any], task: Task, fixtures: Fixtures | None) -> None:
        """Write what an agent writes before it starts a runner. Raises `BadFixture`."""
        self.grant(self.workdir / ".grants", fixtures)
        _write(self.workdir / "spec.json", spec)
        _write(self.workdir / "control.json", {"seq": 0})
        for dataset, mount in task.mounts.items():
            self._copy(dataset, mount, fixtures)

    def change_control(self, changes: Mapping[str, Any]) -> None:
        """Replace control.json by itself with `changes` and the next seq; every other field stays, unknown ones too."""
        path = self.workdir / "control.json"
        document = merged(read_file(path), changes, above=self._seq)
        self._seq = document["seq"]
        _write(path, document)

    def _copy(self, dataset: str, mount: str, fixtures: Fixtures | None) -> None:
        told = Fixtures("") if fixtures is None else fixtures
        folder = told.datasets.get(dataset, {}).get("dir")
        if folder is None:
            return
        try:
            shutil.copytree(Path(told.folder) / folder, self.workdir / mount, dirs_exist_ok=True)
        except OSError:  # shutil.Error is one
            at = f"{told.shown}: /datasets/{dataset}/dir"
            raise BadFixture(f"{at}: must be a folder that can be copied; found {folder!r}") from None

    # ---- what the runner writes --------------------------------------------------------------------------

    def result(self) -> bytes | None:
        """Return result.json, or None."""
        return read_file(self.workdir / "result.json")

    def failure(self) -> bytes | None:
        """Return failure.json, or None."""
        return read_file(self.workdir / "failure.json")

    def has_phase(self) -> bool:
        """Say whether the runner has written a phase."""
        return (self.workdir / "phase").is_file()

    def events_size(self) -> int:
        """Give the bytes in the events file; 0 when there is none."""
        try:
            return (self.workdir / "events.ndjson").stat().st_size
        except OSError:
            return 0

    def events(self, offset: int) -> bytes:
        """Return what stands in the events file from `offset` on."""
        return _read_from(self.workdir / "events.ndjson", offset) or b""

    def missing_files(self, result: bytes | None) -> tuple[str, ...]:
        """Return the `local` files of a result that are no regular files inside the workdir."""
        try:
            value = strictjson.loads(result or b"")
            artifacts = value.get("artifacts", [])
            locals_ = [file.get("local") for artifact in artifacts for file in artifact["files"]]
        except (ValueError, AttributeError, KeyError, TypeError):
            return ()  # no valid result, which is said elsewhere
        return tuple(str(local) for local in locals_ if local is not None and not self._regular(local))

    def _regular(self, local: object) -> bool:
        if not isinstance(local, str):
            return False
        path = self.workdir / local
        try:
            inside = path.resolve().is_relative_to(self.workdir)
        except (OSError, ValueError, RuntimeError):
            return False
        return inside and path.is_file() and not path.is_symlink()


def read_file(path: Path) -> bytes | None:
    """Return a file's bytes, at most RESULT_LIMIT of them; None when there is none to read."""
    return _read_from(path, 0)


def _read_from(path: Path, offset: int) -> bytes | None:
    try:
        # Not blocking, and regular files alone: a runner may have put a pipe there, and nobody writes into it.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        file.seek(offset)
        return file.read(RESULT_LIMIT)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    try:
        replace_text(path, json.dumps(document, ensure_ascii=False) + "\n")
    except OSError as exc:
        raise KitError(f"conform: {path} must be written; {exc}. Free some space.") from None
