"""The digest of a model's bytes, so that a result and a ledger can say which model it was.

Of a file: SHA-256 of its bytes. Of a folder: SHA-256 of the canonical list of its files' names, sizes and digests; of
hidden files and folders nothing. Reading gigabytes takes seconds, so a digest is kept in the module's data directory
and taken again while path, size and time of change (in nanoseconds) of every file are the same: whoever writes other
bytes of the same length and sets the clock back, on their own machine, gets the old digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oarbank_sdk import canonical
from oarbank_sdk.control import replace_text

CACHE = "model-digests.json"
KEPT = 64  # models whose digests are kept
_PART = 4 * 1024 * 1024  # bytes between two safe points: a few milliseconds


def model_digest(model: Path, data_dir: str | None, breathe: Callable[[], None] = lambda: None) -> str:
    """The digest, 64 hex digits; `breathe` is called between parts of a file, and may raise. OSError: unreadable."""
    stamp = looks_of(model)
    cache = None if not data_dir else Path(data_dir, CACHE)
    known = _known(cache)
    place = str(model.absolute())
    kept = known.get(place)
    if isinstance(kept, dict) and kept.get("files") == stamp and isinstance(kept.get("sha256"), str):
        return kept["sha256"]
    digests = [(Path(name), size, _sha256(Path(name), breathe)) for name, size, _ in stamp]
    if model.is_dir():
        listed = [[path.relative_to(model.absolute()).as_posix(), size, digest] for path, size, digest in digests]
        found = canonical.sha256(listed)
    else:
        found = digests[0][2]
    known.pop(place, None)
    _keep(cache, {**known, place: {"files": stamp, "sha256": found}})
    return found


def looks_of(model: Path) -> list[list[Any]]:
    """Path, size and time of change (ns) of each file of a model: what tells it from another without reading it."""
    files = [(path, path.stat()) for path in _files(model.absolute())]
    return [[str(path), stat.st_size, stat.st_mtime_ns] for path, stat in files]


def _files(model: Path) -> Iterator[Path]:
    if not model.is_dir():
        yield model
        return
    for path in sorted(model.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(model).parts)
        if path.is_file() and not hidden:
            yield path


def _sha256(path: Path, breathe: Callable[[], None]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_PART):
            digest.update(part)
            breathe()
    return digest.hexdigest()


def _known(cache: Path | None) -> dict[str, Any]:
    if cache is None:
        return {}
    try:
        known = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _keep(cache: Path | None, known: dict[str, Any]) -> None:
    if cache is not None:
        with contextlib.suppress(OSError):  # a folder that takes nothing costs the time of the next attempt
            replace_text(cache, json.dumps(dict(list(known.items())[-KEPT:])) + "\n")
