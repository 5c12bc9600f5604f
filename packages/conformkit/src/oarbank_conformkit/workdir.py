"""The directories of one run of the kit: an agent's, with what a fixtures file grants and mounts.

A task that its author wrote in a way that cannot be laid out is a `BadFixture`. It must never judge what it reads.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs import workdir
from oarbank_agent_check.jobs.specs import Task
from oarbank_conformkit.fixtures import Fixtures


class BadFixture(Exception):
    """A task cannot be laid out as its author wrote it; the text is one line for people."""


class Scratch(workdir.Scratch):
    """The directories of one run; a context manager that removes them."""

    def __init__(self) -> None:
        super().__init__("oarbank-conform")

    def grant(self, folder: Path, fixtures: Fixtures | None) -> None:
        """Write the files of settings, tools and folders into `folder`."""
        self.write_grants(folder, _grants(fixtures))

    def lay_out(self, spec: Mapping[str, Any], task: Task, fixtures: Fixtures | None) -> None:
        """Write what an agent writes before it starts a runner. Raises `BadFixture`."""
        self.write_first(spec, _grants(fixtures))
        for dataset, mount in task.mounts.items():
            self._copy(dataset, mount, fixtures)

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
    return {"settings": told.settings, "tools": told.tools, "folders": folders}
