"""`oarbank-llmserve models`: what lies in a models folder, which backend opens it, and what it needs in memory.

No backend is needed and no model is loaded: of a GGUF file the beginning is read, of an MLX model its config.json. What
is no model is named with the reason, for its owner put it there as one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from oarbank_llmserve import appetite, gguf
from oarbank_llmserve.appetite import GB, Appetite
from oarbank_llmserve.job import Refusal, backend_for
from oarbank_llmserve.models import look_at
from oarbank_llmserve.payload import shown
from oarbank_sdk.paths import portable_path_fault

_HEAD = 64 * 1024 * 1024  # bytes of a GGUF file that hold its metadata, a large vocabulary included


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in the folder: a model that `backend` opens, or why it is none."""

    name: str
    backend: str | None = None
    appetite: Appetite | None = None
    why: str = ""


class _NoModel(Exception):
    """Inside this file: a folder that is no model."""


def entries(folder: Path) -> list[Entry]:
    """What is in the folder, by name; hidden things are left out. OSError when the folder cannot be read."""
    return [_entry(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".")]


def _entry(path: Path) -> Entry:
    if fault := portable_path_fault(path.name):
        return Entry(path.name, why=f"a job cannot name it: {fault}")
    try:
        found = look_at(path)
        backend = found if isinstance(found, Refusal) else backend_for("auto", found.kind)
        if isinstance(backend, Refusal):
            return Entry(path.name, why=backend.detail.partition(": ")[2])
        return Entry(path.name, backend, _folder(path) if path.is_dir() else _file(path))
    except gguf.NotGguf as fault:
        return Entry(path.name, why=f"must be a GGUF file; {fault}")
    except _NoModel as fault:
        return Entry(path.name, why=str(fault))
    except OSError as fault:
        return Entry(path.name, why=f"must be readable; {fault.strerror}")
    except (ValueError, RecursionError):
        return Entry(path.name, why="must hold a config.json; what it holds is no JSON")


def _file(path: Path) -> Appetite:
    with path.open("rb") as file:
        return appetite.of_gguf(gguf.metadata(file.read(_HEAD)), path.stat().st_size)


def _folder(path: Path) -> Appetite:
    if not (path / "config.json").is_file():
        raise _NoModel("must hold a config.json; found none")
    config = json.loads((path / "config.json").read_bytes())
    if not isinstance(config, dict):
        raise ValueError("no object")
    weights = [file.stat().st_size for file in path.glob("*.safetensors")]
    if not weights:
        raise _NoModel("must hold .safetensors files; found none")
    return appetite.of_config(config, sum(weights))


def default_folder() -> Path:
    """The module's models where an agent says which data directory is its, else `models` here."""
    return Path(os.environ.get("OARBANK_MODULE_DATA") or ".", "models")


def table(found: list[Entry], sequences: int, tokens: int) -> list[str]:
    """Lines for a person."""
    head = ("name", "backend", "weights", "context", f"{sequences} x {tokens} tokens")
    rows = [head, *(_row(entry, sequences, tokens) for entry in found if entry.backend is not None)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines = lines if len(rows) > 1 else []
    return lines + [f"{shown(entry.name)}: {entry.why}" for entry in found if entry.backend is None]


def _row(entry: Entry, sequences: int, tokens: int) -> tuple[str, ...]:
    assert entry.appetite is not None
    asks = entry.appetite
    needs = asks.needs(sequences, tokens)
    context = "unknown" if asks.context is None else str(asks.context)
    return (
        entry.name, entry.backend or "", f"{asks.weights / GB:.2f} GB", context,
        "unknown" if needs is None else f"{needs:.2f} GB",
    )  # fmt: skip
