"""Where a result is kept: result.json and the files of its artifacts, copied out before the workdir goes.

The folder is made before the job starts, so that hours of work never end at a folder that cannot be written to, and
removed again when nothing came. It never writes into a folder that holds something.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.faults import HostFault, UsageError

MOST_TRIED = 1000


class ResultFolder:
    """A fresh folder. Raises `UsageError` where it cannot be made or holds something."""

    def __init__(self, path: Path) -> None:
        try:
            path.mkdir(parents=True, exist_ok=True)
            holds = next(path.iterdir(), None)
        except (OSError, ValueError) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise UsageError(f"--out {path}: must be a folder that can be made; {why}. Give another.") from None
        if holds is not None:
            raise UsageError(f"--out {path}: must be empty or not there yet; found {holds.name}. Give another folder.")
        if not os.access(path, os.W_OK | os.X_OK):
            raise UsageError(f"--out {path}: must be a folder to write in; found one that is not. Give another.")
        self.path = path

    @classmethod
    def beside(cls, name: str) -> ResultFolder:
        """Make the first of `name`, `name-2`, `name-3` ... that is not there yet, in the current directory."""
        for number in range(1, MOST_TRIED):
            path = Path(name if number == 1 else f"{name}-{number}")
            if not path.exists():
                return cls(path)
        raise UsageError(f"{name}: a result needs a folder; found {MOST_TRIED - 1} of that name. Give --out.")

    def keep(self, workdir: Path, data: bytes, result: Mapping[str, Any]) -> int:
        """Copy a valid result and the files that it names; how many files. Raises `HostFault`."""
        locals_ = [
            file["local"]
            for artifact in result.get("artifacts", [])
            for file in artifact["files"]
            if file.get("local") is not None
        ]
        try:
            for local in locals_:
                target = self.path / local
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(workdir / local, target)
            (self.path / "result.json").write_bytes(data)
        except OSError as exc:
            why = exc.strerror or exc
            raise HostFault(f"{self.path}: the result must be kept; {why}. Free some space and run it again.") from None
        return len(locals_) + 1

    def drop(self) -> None:
        """Remove the folder if nothing was kept."""
        with contextlib.suppress(OSError):
            self.path.rmdir()
