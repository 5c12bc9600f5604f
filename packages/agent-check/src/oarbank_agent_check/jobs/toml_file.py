"""Read a TOML file that a person wrote; what cannot be read is the caller's to mend (`UsageError`), with its line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_sdk.whole_file import read_whole

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
_KEYS = re.compile(r"\('[^']*'(?:, '[^']*')*,?\)")  # how tomllib shows a table: as a tuple of its keys


def file_bytes(path: Path, shown: str) -> bytes:
    """Return a file's bytes. Raises `UsageError` for one that cannot be read; `shown` is its name in the line."""
    try:
        return read_whole(path)
    except (OSError, ValueError) as exc:  # ValueError: a name that no file can have
        reason = getattr(exc, "strerror", None) or exc
        raise UsageError(f"{shown}: must be readable; {reason}. Check the file and its rights.") from None


def read_toml(path: Path, shown: str) -> tuple[str, dict[str, Any]]:
    """Return a file's text and what it says. Raises `UsageError`; `shown` is the file's name in the line."""
    data = file_bytes(path, shown)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        byte = f"the byte 0x{data[exc.start]:02x}"
        raise UsageError(f"{shown}: line {line}: must be UTF-8; found {byte}. Fix the file's encoding.") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(_not_toml(text, exc, shown)) from None
    except RecursionError:
        raise UsageError(f"{shown}: line 1: must be TOML; found too many levels. Fix the nesting.") from None


def _not_toml(text: str, exc: tomllib.TOMLDecodeError, name: str) -> str:
    place = _PLACE.search(str(exc))
    why = _KEYS.sub(lambda keys: "[" + ".".join(re.findall(r"'([^']*)'", keys[0])) + "]", _PLACE.sub("", str(exc)))
    lines = text.splitlines() or [""]
    line = min(int(place[1]), len(lines)) if place and place[1] else len(lines)
    shown = lines[line - 1].strip()
    return f"{name}: line {line}: must be TOML; found {shown[:80]!r}. Fix it: {why[:1].lower()}{why[1:]}."
