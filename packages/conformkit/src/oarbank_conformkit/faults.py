"""How a fault is worded: what was found, cut to a length, and the mark that ends a sentence.

What a runner does wrong is never an exception: it is evidence, and `judge` turns it into a check. The two exceptions
there are, `UsageError` and `HostFault`, belong to `oarbank_agent_check.jobs.faults`.
"""

from __future__ import annotations


def found(value: object, limit: int = 80) -> str:
    """Return a value as an error shows it: its repr, cut to `limit` characters."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def sentence(text: str) -> str:
    """Return a text with the mark that ends it: a full stop, where it does not end in one or in a question."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
