"""The rules as a list: for people two lines a rule, for programs one JSON array. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from oarbank_conformkit.rules import Rule


def as_text(rules: Iterable[Rule]) -> str:
    """Return id, level and source of each rule, and below it what it says; ends in LF."""
    listed = list(rules)
    width = max((len(rule.id) for rule in listed), default=0)
    lines = [f"{rule.id:<{width}}  {rule.level:<6}  {rule.source}\n    {rule.says}\n" for rule in listed]
    return "".join(lines)


def as_json(rules: Iterable[Rule]) -> str:
    """Return an array of objects with id, suite, level, says and source; ends in LF."""
    listed = [
        {"id": rule.id, "suite": rule.suite, "level": rule.level, "says": rule.says, "source": rule.source}
        for rule in rules
    ]
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"
