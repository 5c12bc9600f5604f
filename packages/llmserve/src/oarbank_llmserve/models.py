"""Where a job's model is on this node: one entry of the models folder, and of what kind.

It looks at nothing outside that folder: a name holds no path (job.py), and a link that leads out of it is refused. It
never opens a model; the engine does that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from oarbank_llmserve.job import Refusal, no_model


@dataclass(frozen=True, slots=True)
class Found:
    """A model and what it looks like: "folder", "gguf" or "other"."""

    path: Path
    kind: str


def kind_of(path: Path) -> str:
    """What `path` looks like from outside."""
    if path.is_dir():
        return "folder"
    return "gguf" if path.is_file() and path.suffix.lower() == ".gguf" else "other"


def find_model(data_dir: str | None, name: str) -> Found | Refusal:
    """The model called `name` below `data_dir`/models."""
    if not data_dir:
        return no_model("OARBANK_MODULE_DATA: must be the module's data directory; not set")
    folder = Path(data_dir, "models")
    path = folder / name
    try:
        if not path.exists():
            return no_model(f"models/{name}: not on this node. Put it into {folder}")
        if not path.resolve().is_relative_to(folder.resolve()):
            return no_model(f"models/{name}: must not lead out of {folder}")
        return Found(path, kind_of(path))
    except OSError as fault:
        return no_model(f"models/{name}: cannot be looked at; {fault.strerror}")
