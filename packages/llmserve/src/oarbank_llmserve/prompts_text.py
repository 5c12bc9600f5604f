"""A person's prompts: the text of a file in, prompts as a payload holds them out. Pure.

Two forms. Plain: a prompt a line. JSON Lines: on each line text, a list of messages, or an object of `prompt` or
`messages`, with `id` and settings of its own. It is JSON Lines when the file's name ends in .jsonl or .ndjson, or when
the first line is an object that holds `prompt` or `messages`; nothing else is guessed. Empty lines are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oarbank_sdk import strictjson

_ENDINGS = (".jsonl", ".ndjson")


class BadLine(Exception):
    """One line that is no prompt."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts, and the line of the file that each is on, from 1."""

    values: list[Any]
    lines: list[int]


def read(text: str, name: str, *, chat: bool = False) -> Prompts:
    """The prompts; `chat` makes each plain one a user's message. Raises `BadLine`."""
    rows = [(number, line.rstrip("\r")) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    as_json = bool(rows) and (name.lower().endswith(_ENDINGS) or _is_object(rows[0][1]))
    values = [_json(number, line) if as_json else line for number, line in rows]
    if chat:
        values = [_as_message(value) for value in values]
    return Prompts(values, [number for number, _ in rows])


def _is_object(line: str) -> bool:
    try:
        value = strictjson.loads(line)
    except strictjson.StrictJSONError:
        return False
    return isinstance(value, dict) and ("prompt" in value or "messages" in value)


def _json(number: int, line: str) -> Any:
    try:
        return strictjson.loads(line)
    except strictjson.StrictJSONError as fault:
        raise BadLine(number, str(fault)) from None


def _as_message(value: Any) -> Any:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if isinstance(value, dict) and isinstance(value.get("prompt"), str):
        rest = {key: one for key, one in value.items() if key != "prompt"}
        return {**rest, "messages": [{"role": "user", "content": value["prompt"]}]}
    return value
