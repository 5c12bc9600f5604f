"""Put what an owner has prepared, such as `models/`, into a module data directory that is fresh for each run.

Small files are copied. Big ones are linked, since a model for each run would fill the disk: a runner that writes into
such a file writes into the owner's. Nothing is judged here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from oarbank_agent_check.jobs.faults import HostFault, UsageError

COPIED_AT_MOST = 4 << 20
"""Bytes of a file that is copied; a bigger one is hard-linked, or linked symbolically from another file system."""


def checked(given: str) -> Path:
    """Return the folder that the caller named. Raises `UsageError` where there is none."""
    folder = Path(given)
    if not folder.is_dir():
        what = "a file" if folder.exists() else "nothing there"
        raise UsageError(f"--data {given}: must be a folder; found {what}. Give one that holds what runs need.")
    return folder.resolve()


def stock(folder: Path, data: Path) -> None:
    """Put the contents of `folder` into `data`, which exists. Raises `HostFault`."""
    try:
        shutil.copytree(folder, data, copy_function=_place, dirs_exist_ok=True)
    except OSError as exc:  # shutil.Error is one, with one line for each file
        reason = exc.args[0][0][2] if isinstance(exc, shutil.Error) else exc
        raise HostFault(f"start: {folder} must be copied for a run; {reason}. Check rights and space.") from None


def _place(source: str, target: str) -> None:
    if os.stat(source).st_size <= COPIED_AT_MOST:
        shutil.copyfile(source, target)
        return
    whole = os.path.realpath(source)
    try:
        os.link(whole, target)
    except OSError:
        os.symlink(whole, target)
