"""Where a guard keeps results, one folder a job, so that a job that is done is not run again.

A folder appears whole, by a rename, with `job.json` in it that says of which job it is. It never writes into a folder
that it did not make, and never takes the result of one job for that of another.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.jobs.workdir import Scratch, read_file
from oarbank_agent_check.result_folder import ResultFolder
from oarbank_sdk import strictjson

ABOUT = "job.json"
UNFINISHED = ".unfinished"


class GuardResults:
    """The folder of all results. Raises `UsageError` for one that cannot be made or written to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as exc:
            why = getattr(exc, "strerror", None) or exc
            raise UsageError(f"--out {root}: must be a folder that can be made; {why}. Give another.") from None
        if not os.access(root, os.W_OK | os.X_OK):
            raise UsageError(f"--out {root}: must be a folder to write in; found one that is not. Give another.")

    def finished(self, name: str, key: str) -> bool:
        """Say whether the job of this name and key has its result. Raises `UsageError` where another's lies there."""
        folder = self.root / name
        if not folder.exists():
            return False
        try:
            found = strictjson.loads(read_file(folder / ABOUT) or b"")
        except strictjson.StrictJSONError:
            found = None
        if not isinstance(found, dict) or "job_key" not in found:
            raise UsageError(
                f"{folder}: must be a job's result or not there; found something else. Give another --out."
            )
        if found["job_key"] != key:
            raise UsageError(
                f"{folder}: must be the result of this job; found that of another of its name. Remove it, or rename the"
                " job."
            )
        return True

    def keep(self, name: str, key: str, scratch: Scratch, data: bytes, result: Mapping[str, Any]) -> str:
        """Copy a valid result and its files; where they are, in words. Raises `HostFault`."""
        unfinished = self.root / (name + UNFINISHED)
        shutil.rmtree(unfinished, ignore_errors=True)  # of an agent that was killed
        try:
            files = ResultFolder(unfinished).keep(scratch.workdir, data, result)
            (unfinished / ABOUT).write_text(json.dumps({"job": name, "job_key": key}) + "\n")
            os.rename(unfinished, self.root / name)
        except UsageError as exc:
            raise HostFault(str(exc)) from None
        except OSError as exc:
            why = exc.strerror or exc
            raise HostFault(f"{self.root}: the result must be kept; {why}. Free some space and run it again.") from None
        return f"{files} {'file' if files == 1 else 'files'} in {self.root / name}"
