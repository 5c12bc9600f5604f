"""The directories of one run of the kit: an agent's, with what a fixtures file grants and mounts.

A task that its author wrote in a way that cannot be laid out is a `BadFixture`. It must never judge what it reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs import workdir
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.specs import Task
from oarbank_conformkit.data_folder import stock
from oarbank_conformkit.fixtures import Fixtures
from oarbank_sdk.control import replace_text

LEFT_OUT = ("__pycache__", ".git")
"""Folders that are no part of a bundle; Python writes the first wherever it may, and does without where it may not."""

COPIED_AT_MOST = 512 << 20
"""Bytes of a bundle that is copied for a run."""


class BadFixture(Exception):
    """A task cannot be laid out as its author wrote it; the text is one line for people."""


class Scratch(workdir.Scratch):
    """The directories of one run; a context manager that removes them.

    `stocked` is a folder whose contents every fresh data directory holds; `name` begins the name of the directory.
    """

    def __init__(self, stocked: Path | None = None, name: str = "oarbank-conform") -> None:
        super().__init__(name)
        self.copied: Path | None = None  # the bundle's copy in here
        self._stood: dict[str, tuple[int, int, int]] = {}
        self._root_stood: int | None = None
        if stocked is not None:
            try:
                stock(stocked, self.data)
            except BaseException:
                self.__exit__(None, None, None)
                raise

    def grant(self, folder: Path, fixtures: Fixtures | None) -> None:
        """Write the files of settings, tools and folders into `folder`."""
        self.write_grants(folder, _grants(fixtures))

    def lay_out(
        self, spec: Mapping[str, Any], task: Task, fixtures: Fixtures | None, secrets: Mapping[str, str]
    ) -> None:
        """Write what an agent writes before it starts a runner. Raises `BadFixture` and `HostFault`."""
        self.write_first(spec, _grants(fixtures))
        if secrets:
            try:
                replace_text(self.secrets_file, json.dumps(secrets) + "\n")
                self.secrets_file.chmod(0o600)
            except OSError as exc:
                raise HostFault(f"start: {self.secrets_file} must be written; {exc}. Free some space.") from None
        for dataset, mount in task.mounts.items():
            self._copy(dataset, mount, fixtures)

    @property
    def secrets_file(self) -> Path:
        """Where the runner finds its secrets."""
        return self.workdir / ".grants" / "secrets.json"

    def copy_bundle(self, bundle: Path) -> Path:
        """Copy the module's directory beside the workdir, note how it stands there, and return the copy.

        Bytecode that Python keeps is left out, and a bundle over COPIED_AT_MOST bytes is not copied: the bundle itself
        is returned then. Raises `HostFault`.
        """
        try:
            if _size(bundle) > COPIED_AT_MOST:
                self._root_stood = self.root.stat().st_mtime_ns
                return bundle
            copy = self.root / "the bundle"
            shutil.copytree(bundle, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        except OSError as exc:
            reason = exc.args[0][0][2] if isinstance(exc, shutil.Error) else exc
            raise HostFault(f"start: {bundle} must be copied for a run; {reason}. Check its rights.") from None
        self.copied = copy
        self._stood = _snapshot(copy)
        self._root_stood = self.root.stat().st_mtime_ns
        return copy

    def strays(self) -> list[str]:
        """Return what has been written beside the workdir and the data directory, or into the copied bundle.

        Beside them also what is gone again: making and removing it moved the time of the folder.
        """
        known = {self.workdir, self.data, self.copied}
        beside = [f"{path.name} beside the workdir" for path in sorted(self.root.iterdir()) if path not in known]
        if not beside and self._root_stood not in (None, self.root.stat().st_mtime_ns):
            beside = ["something beside the workdir that is gone again"]
        if self.copied is None:
            return beside
        now = _snapshot(self.copied)
        changed = sorted(name for name in now.keys() | self._stood.keys() if now.get(name) != self._stood.get(name))
        return beside + [f"{name} in the bundle" for name in changed]

    def holding(self, secrets: Mapping[str, str]) -> list[str]:
        """Return the names of files in the workdir and the data directory that hold a secret, the granted one aside."""
        wanted = [text.encode() for text in secrets.values() if text]
        found = []
        for folder in (self.workdir, self.data):
            for path in sorted(folder.rglob("*")):
                if path != self.secrets_file and path.is_file() and not path.is_symlink():
                    data = workdir.read_file(path) or b""
                    if any(text in data for text in wanted):
                        found.append(str(path.relative_to(folder)))
        return found

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


def _grants(fixtures: Fixtures | None) -> dict[str, Mapping[str, Any]]:
    told = Fixtures("") if fixtures is None else fixtures
    folders = {name: str(Path(told.folder) / path) for name, path in told.folders.items()}
    tools = {name: _tool(told.folder, path) for name, path in told.tools.items()}
    return {"settings": told.settings, "tools": tools, "folders": folders}


def _tool(folder: str, path: str) -> str:
    """A tool's path: beside the fixtures file, else where the system finds such a program, else as it stands."""
    beside = Path(folder) / path
    return str(beside) if beside.is_file() else shutil.which(path) or path


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in _files(folder))


def _snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """How each file stands: size, time of the last change of its content and of anything about it."""
    seen = {}
    for path in _files(folder):
        with contextlib.suppress(OSError):
            about = path.lstat()
            seen[str(path.relative_to(folder))] = (about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    for at, folders, _ in os.walk(folder):  # of folders that they are there: the time moves with bytecode too
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        seen |= {f"{(Path(at, name)).relative_to(folder)}{os.sep}": (0, 0, 0) for name in folders}
    return seen


def _files(folder: Path) -> Iterator[Path]:
    for at, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from (Path(at, name) for name in names)
