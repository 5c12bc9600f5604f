"""Where a job's model is on this node: one entry of the models folder, and of what kind.

A job's name leads nowhere else: it holds no path (payload.py). A link in the folder is followed wherever it leads, for
only the node's owner could put it there. Of a model this file reads the first bytes alone, so that a file that is none
is refused where no backend is installed, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oarbank_llmserve.job import Refusal, no_model

_MAGIC = b"GGUF"  # how such a file begins


@dataclass(frozen=True, slots=True)
class Found:
    """A model and what it looks like: "folder", "gguf" or "other"."""

    path: Path
    kind: str


def look_at(path: Path) -> Found | Refusal:
    """What is at `path`, where something is; a `.gguf` file must begin as one."""
    if path.is_dir():
        return Found(path, "folder")
    if not path.is_file() or path.suffix.lower() != ".gguf":
        return Found(path, "other")
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as fault:
        return no_model(f"model {path.name}: must be a file that can be read; {fault.strerror}")
    if begins != _MAGIC:
        what = f"its first bytes are {begins!r}" if begins else "it is empty"
        return no_model(f"model {path.name}: must be a GGUF file; {what}. Fetch it again, or name another")
    return Found(path, "gguf")


def find_model(data_dir: str | None, name: str) -> Found | Refusal:
    """The model called `name` below `data_dir`/models."""
    if not data_dir:
        return no_model("OARBANK_MODULE_DATA: must be the module's data directory; not set")
    folder = Path(data_dir, "models")
    path = folder / name
    try:
        if not path.exists():
            return no_model(f"models/{name}: not on this node. Put it into {folder}")
        return look_at(path)
    except OSError as fault:
        return no_model(f"models/{name}: cannot be looked at; {fault.strerror}")
