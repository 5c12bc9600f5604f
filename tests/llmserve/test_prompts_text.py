"""A person's file: a prompt a line, or JSON Lines, and never a guess between the two."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.prompts_text import BadLine, read

CHAT = [{"role": "user", "content": "a"}]
ROWS: list[tuple[str, str, str, list[Any], list[int]]] = [
    # behaviour                        name       text                                  prompts                lines
    ("plain lines", "p.txt", "a\n\n b \r\n", ["a", " b "], [1, 3]),
    ("text that looks like JSON", "p.txt", '"a"\n[1]\n{}\n', ['"a"', "[1]", "{}"], [1, 2, 3]),
    ("code in braces", "p.txt", '{"x": 1}\nb', ['{"x": 1}', "b"], [1, 2]),
    ("a first line with a prompt", "-", '{"prompt": "a"}\n\n"b"', [{"prompt": "a"}, "b"], [1, 3]),
    ("a first line with messages", "-", '{"messages": []}', [{"messages": []}], [1]),
    ("a name of JSON Lines", "p.jsonl", '"a"\n[{"role": "user", "content": "a"}]', ["a", CHAT], [1, 2]),
    ("another, in capitals", "P.NDJSON", '"a"', ["a"], [1]),
    ("nothing", "p.jsonl", " \n", [], []),
]


@pytest.mark.parametrize(("name", "text", "values", "lines"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_forms(name: str, text: str, values: list[Any], lines: list[int]) -> None:
    found = read(text, name)

    assert (found.values, found.lines) == (values, lines)


def test_chat_makes_messages_of_what_is_text() -> None:
    found = read('{"prompt": "a", "id": 1}\n"a"\n[{"role": "user", "content": "a"}]\n{"messages": []}', "-", chat=True)

    assert found.values == [{"id": 1, "messages": CHAT}, CHAT, CHAT, {"messages": []}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('"a"\n\n{', "line 3: must be JSON; found at line 1 column 2"),
        ('"a"\n{"prompt": "a", "prompt": "b"}', 'line 2: must hold each key once; found "prompt" twice'),
        ("NaN", "line 1: must be JSON; found NaN"),
    ],
)
def test_line_that_is_no_json_is_named(text: str, says: str) -> None:
    with pytest.raises(BadLine, match=says):
        read(text, "p.jsonl")


@given(st.text(), st.sampled_from(["p.txt", "p.jsonl"]), st.booleans())
def test_any_text_is_prompts_or_a_named_line(text: str, name: str, chat: bool) -> None:
    with contextlib.suppress(BadLine):
        found = read(text, name, chat=chat)
        assert len(found.values) == len(found.lines)
