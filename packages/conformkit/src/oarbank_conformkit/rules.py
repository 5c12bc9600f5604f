"""The rules that checks are judged by, read from `rules.toml` beside this file.

A rule has an id that never changes, a level, one sentence and a source. Checks name rules by id, so a rule's wording
is data and a report stays comparable across versions. Reads package data and nothing else.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Literal

Level = Literal["must", "should"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a module must or should do."""

    id: str
    level: Level
    says: str
    source: str

    @property
    def suite(self) -> str:
        """The part of the id before its dot: what is judged together."""
        return self.id.partition(".")[0]


def chosen(patterns: Iterable[str]) -> frozenset[str]:
    """Return the ids that a pattern (`*`, `?`, `[...]`) matches as a whole or by their suite; all without a pattern.

    Raises KeyError with the first pattern that matches nothing.
    """
    listed = catalogue().values()
    found: set[str] = set()
    for pattern in (asked := list(patterns)):
        matching = {one.id for one in listed if fnmatchcase(one.id, pattern) or fnmatchcase(one.suite, pattern)}
        if not matching:
            raise KeyError(pattern)
        found |= matching
    return frozenset(found if asked else catalogue())


@cache
def catalogue() -> Mapping[str, Rule]:
    """Return every rule by id, in the order of the file."""
    text = (files("oarbank_conformkit") / "rules.toml").read_text("utf-8")
    return {entry["id"]: Rule(**entry) for entry in tomllib.loads(text)["rule"]}
