"""What is wrong with a document, and where: the form that every judge of a document shares.

A fault names its place by a JSON pointer (RFC 6901), its rule by a keyword, and says in one short sentence what must
hold and what was found. Keywords are stable and tests rest on them; the wording is for people and may change.
Pure, standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

MAX_FOUND = 80
"""Characters of a found value that a message shows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One cause for which a document is refused, or one warning about it."""

    pointer: str  # RFC 6901; "" is the whole document
    keyword: str  # of JSON Schema, of the reader (duplicate-key), or of a rule (portable-path)
    message: str  # one short sentence, lower case

    def line(self, where: str) -> str:
        """Return the fault as a line for people; `where` names the file."""
        return ": ".join(part for part in (where, self.pointer, self.message) if part)


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer of a path of object keys and list indices."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def found(value: Any) -> str:
    """Return a value as a message shows it: as JSON, cut to 80 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= MAX_FOUND else text[: MAX_FOUND - 3] + "..."


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean KEY?" for a known key that looks like `name`, or an empty text."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f"; did you mean {close[0]}?" if close else ""
