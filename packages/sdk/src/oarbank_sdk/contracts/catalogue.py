"""The schemas that ship inside this package, by kind ("runner-control-1").

Reads package data and nothing else: no network, no path of the caller's. Files that are no contract of their own (the
shared definitions, the index) belong to `documents` but are no kind. Standard library only.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

SUFFIX = ".schema.json"
BASE = "https://schemas.oarbank.dev/"

# A contract's name ends with its major version.
_KIND = re.compile(r"[a-z][a-z0-9-]*-[1-9][0-9]*")


class UnknownKind(KeyError):
    """No contract has this name."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        near = get_close_matches(self.kind, kinds(), 1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"kind: must be one of {', '.join(kinds())}; found {self.kind!r}.{hint}"


def kinds() -> list[str]:
    """Return the names of all contracts, sorted."""
    return [name for name in _names() if _KIND.fullmatch(name)]


def text(kind: str) -> str:
    """Return the schema of a contract as it is written; raises UnknownKind."""
    if kind not in kinds():
        raise UnknownKind(kind)
    return _read(kind)


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of a contract as a value of its own, safe to change; raises UnknownKind."""
    value: dict[str, Any] = json.loads(text(kind))
    return value


def documents() -> list[dict[str, Any]]:
    """Return every schema document that references may lead to, the shared definitions included."""
    return [json.loads(_read(name)) for name in _names()]


def address(kind: str) -> str:
    """Return the `$id` of a contract's schema."""
    return f"{BASE}{kind}{SUFFIX}"


@cache
def _names() -> tuple[str, ...]:
    found = (entry.name for entry in (files("oarbank_sdk") / "schemas").iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)))


@cache
def _read(name: str) -> str:
    return (files("oarbank_sdk") / "schemas" / f"{name}{SUFFIX}").read_text("utf-8")
