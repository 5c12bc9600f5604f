"""The directories of one run, as an agent lays them out, and the files that pass between its starter and the runner.

A run gets a fresh scratch directory that holds its workdir, its data directory and nothing else; it is removed with
all that the runner left. Writes that the disk refuses are this side's fault (`HostFault`). It must never judge what
it reads.
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
from typing import Any, Self

from oarbank_agent_check.jobs.control_document import merged
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_sdk import strictjson
from oarbank_sdk.control import replace_text

GRANTS = ("settings", "tools", "folders")

RESULT_LIMIT = 64 << 20
"""Bytes of a document that are read at most: far above any inline limit, and still no danger to the reader."""


PHASE_SHOWN = 40
"""Characters of a phase that an agent shows."""

PHASE_LIMIT = 4096

READ_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
"""Windows has the last alone."""


class Scratch:
    """The directories of one run; a context manager that removes them."""

    def __init__(self, name: str) -> None:
        """Make them under a temporary directory whose name begins with `name`. Raises `HostFault`."""
        self._seq = 0
        try:
            self.root = Path(tempfile.mkdtemp(prefix=f"{name}-")).resolve()
            self.data = self.root / "data"
            self.workdir = self.root / "work"
            for folder in (self.data / "tmp", self.workdir / "tmp"):
                folder.mkdir(parents=True)
        except OSError as exc:
            raise HostFault(f"start: a temporary directory must be made; {exc}. Free some space.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    # ---- what the starter writes -----------------------------------------------------------------------

    def write_grants(self, folder: Path, grants: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the files of settings, tools and folders into `folder`, empty where `grants` holds none."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise HostFault(f"start: {folder} must be made; {exc}. Free some space.") from None
        for name in GRANTS:
            _write(folder / f"{name}.json", grants.get(name, {}))

    def write_first(self, spec: Mapping[str, Any], grants: Mapping[str, Mapping[str, Any]]) -> None:
        """Write what an agent writes before it starts a runner: grants, spec, the first control document."""
        self.write_grants(self.workdir / ".grants", grants)
        _write(self.workdir / "spec.json", spec)
        _write(self.workdir / "control.json", {"seq": 0})

    def replace_control(self, document: Mapping[str, Any]) -> None:
        """Replace control.json by `document` with the next seq: the whole state, nothing of the last one stays."""
        self._seq += 1
        _write(self.workdir / "control.json", {**document, "seq": self._seq})

    def change_control(self, changes: Mapping[str, Any]) -> None:
        """Replace control.json by itself with `changes` and the next seq; every other field stays, unknown ones too."""
        path = self.workdir / "control.json"
        document = merged(read_file(path), changes, above=self._seq)
        self._seq = document["seq"]
        _write(path, document)

    # ---- what the runner writes --------------------------------------------------------------------------

    def result(self) -> bytes | None:
        """Return result.json, or None."""
        return read_file(self.workdir / "result.json")

    def failure(self) -> bytes | None:
        """Return failure.json, or None."""
        return read_file(self.workdir / "failure.json")

    def phase(self) -> str | None:
        """Return the phase that the runner wrote last, 40 characters at most; None before the first."""
        data = read_file(self.workdir / "phase", limit=PHASE_LIMIT)
        if data is None:
            return None
        text = data.decode("utf-8", errors="replace").strip()[:PHASE_SHOWN]
        return "".join(char if char.isprintable() else "?" for char in text)  # it goes to a terminal

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


def read_file(path: Path, *, limit: int = RESULT_LIMIT) -> bytes | None:
    """Return a file's bytes, at most `limit` of them; None when there is none to read."""
    return _read_from(path, 0, limit)


def _read_from(path: Path, offset: int, limit: int = RESULT_LIMIT) -> bytes | None:
    try:
        # Not blocking, and regular files alone: a runner may have put a pipe there, and nobody writes into it.
        number = os.open(path, READ_FLAGS)
    except OSError:
        return None
    with open(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return None
        file.seek(offset)
        return file.read(limit)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    try:
        replace_text(path, json.dumps(document, ensure_ascii=False) + "\n")
    except OSError as exc:
        raise HostFault(f"start: {path} must be written; {exc}. Free some space.") from None
