"""Who must act when the kit cannot go on: the caller, or the kit's own makers.

What a runner does wrong is never an exception: it is evidence, and `judge` turns it into a check. Two things are left.
A `UsageError` means that the question was wrong (exit 2); a `KitError` means that the kit could not do its part
(exit 3), and it must never be blamed on the runner. Both carry one line in the form
`where: what must hold; what was found. What to do.`
"""

from __future__ import annotations


class UsageError(Exception):
    """The caller asked for something that cannot be judged; the text is one line for people."""


class KitError(Exception):
    """The kit, or the machine below it, failed at its own part; the text is one line for people."""


def found(value: object, limit: int = 80) -> str:
    """Return a value as an error shows it: its repr, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def sentence(text: str) -> str:
    """Return a text with the mark that ends it: a full stop, where it does not end in one or in a question."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
