"""Write a report into a file: whole or not at all, and asked about before minutes of judging are spent.

It writes the one file that it was told and nothing else. A device or a pipe is written to as it is; anything else is
replaced in one step, so that whoever reads it never finds half of a report.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from oarbank_agent_check.jobs.faults import HostFault, UsageError


def checked(option: str, named: str) -> Path:
    """Return the path to write to. Raises `UsageError` for one that cannot become a file."""
    try:
        path = Path(os.path.realpath(named))  # a link stays a link
        if not named or path.is_dir():
            raise UsageError(f"{option} {named}: must be a file; found {'a folder' if named else 'no name'}. Name one.")
        if not path.parent.is_dir():
            raise UsageError(f"{option} {named}: must lie in a folder that is there; found none. Make {path.parent}.")
        if not os.access(path if _as_it_is(path) else path.parent, os.W_OK):
            raise UsageError(f"{option} {named}: must be in a folder to write in; found one that is not. Give another.")
    except (OSError, ValueError) as exc:  # a name that no file can have
        raise UsageError(f"{option} {named[:80]!r}: must be the name of a file; {exc}. Give another.") from None
    return path


def write(path: Path, text: str) -> None:
    """Write the text. Raises `HostFault` when the system does not take it; what was there before is there then."""
    try:
        if _as_it_is(path):
            path.write_text(text, encoding="utf-8")
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:80]}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.chmod(name, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as exc:
        raise HostFault(f"{path}: the report must be written; {exc.strerror or exc}. Give another file.") from None


def _as_it_is(path: Path) -> bool:
    return path.exists() and not path.is_file()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
