"""Where in a TOML text a key is written, so that a mistake can be shown with its line.

Rests on the parser alone: a statement ends on the first line up to which the text parses and holds the key, and begins
behind the last line before that up to which it parses. Pure; for texts that parse.
"""

from __future__ import annotations

import tomllib
from typing import Any


def path_of(pointer: str) -> tuple[str, ...]:
    """Return the steps of a JSON pointer."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def line_of(text: str, path: tuple[str, ...]) -> int:
    """Return the line, from 1, that gives the value at `path`, or the nearest table around it that is written."""
    lines = text.splitlines()
    documents: dict[int, Any] = {}

    def whole(count: int) -> tuple[int, Any]:
        """The most lines up to `count` that parse, and what they hold."""
        for upto in range(count, 0, -1):
            if upto not in documents:
                documents[upto] = _parsed(lines[:upto])
            if documents[upto] is not None:
                return upto, documents[upto]
        return 0, {}

    while path and not _holds(whole(len(lines))[1], path):
        path = path[:-1]
    if not path:
        return 1
    low, high = 0, len(lines)  # the statement ends behind `low` and by `high`
    while high - low > 1:
        middle = (low + high) // 2
        if _holds(whole(middle)[1], path):
            high = middle
        else:
            low = middle
    begins = whole(high - 1)[0]
    while begins + 1 < high and not lines[begins].partition("#")[0].strip():
        begins += 1
    return begins + 1


def _parsed(lines: list[str]) -> Any:
    try:
        return tomllib.loads("\n".join(lines) + "\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _holds(value: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return False
    return True
