"""A line of JSON-RPC: what it asks for, or which error answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk import module_rpc
from oarbank_sdk.module_rpc import MAX_LINE, PARAMS, PARSE, REQUEST, Call, Error, Lines, TooLong, answer, error, parse

ROWS: list[tuple[str, bytes, Any]] = [
    # behaviour                     line                                                       what it comes to
    ("a request", b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1}}', Call("a", {"x": 1}, 1, True)),
    ("no params are none", b'{"jsonrpc":"2.0","id":"x","method":"a"}', Call("a", {}, "x", True)),
    ("null params are none", b'{"jsonrpc":"2.0","id":"x","method":"a","params":null}', Call("a", {}, "x", True)),
    ("a notification", b'{"jsonrpc":"2.0","method":"a"}', Call("a", {}, None, False)),
    ("a carriage return", b'{"jsonrpc":"2.0","id":1,"method":"a"}\r', Call("a", {}, 1, True)),
    ("the last of two keys", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}', Call("a", {}, 2, True)),
    ("a blank line", b" \r", None),
    ("an answer nobody asked for", b'{"jsonrpc":"2.0","id":1,"result":{}}', None),
    ("an error nobody caused", b'{"jsonrpc":"2.0","id":1,"error":{}}', None),
    ("a bad notification is not answered", b'{"jsonrpc":"2.0","method":"a","params":[1]}', None),
    ("no JSON", b"{", (PARSE, None)),
    ("no UTF-8", b'"\xff"', (PARSE, None)),
    ("NaN", b'{"jsonrpc":"2.0","id":NaN,"method":"a"}', (PARSE, None)),
    ("a byte order mark", b"\xef\xbb\xbf{}", (PARSE, None)),
    ("100000 brackets", b"[" * 100_000, (PARSE, None)),
    ("a batch", b"[]", (REQUEST, None)),
    ("text", b'"a"', (REQUEST, None)),
    ("no version", b'{"id":1,"method":"a"}', (REQUEST, 1)),
    ("another version", b'{"jsonrpc":"1.0","id":1,"method":"a"}', (REQUEST, 1)),
    ("an id that is null", b'{"jsonrpc":"2.0","id":null,"method":"a"}', (REQUEST, None)),
    ("an id that is true", b'{"jsonrpc":"2.0","id":true,"method":"a"}', (REQUEST, None)),
    ("an id that is a list", b'{"jsonrpc":"2.0","id":[1],"method":"a"}', (REQUEST, None)),
    ("an id that no double holds", b'{"jsonrpc":"2.0","id":1e999,"method":"a"}', (REQUEST, None)),
    ("no method", b'{"jsonrpc":"2.0","id":1}', (REQUEST, 1)),
    ("a method that is a number", b'{"jsonrpc":"2.0","id":1,"method":7}', (REQUEST, 1)),
    ("a method as long as a line", b'{"jsonrpc":"2.0","id":1,"method":"' + b"a" * 201 + b'"}', (REQUEST, 1)),
    ("an id as long as a line", b'{"jsonrpc":"2.0","id":"' + b"a" * 1001 + b'","method":"a"}', (REQUEST, None)),
    ("params in a list", b'{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}', (PARAMS, 1)),
    ("an empty object", b"{}", (REQUEST, None)),
]


@pytest.mark.parametrize(("line", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_line(line: bytes, expected: Any) -> None:
    found = parse(line)

    assert ((found.code, found.id) if isinstance(found, Error) else found) == expected


@given(st.binary())
def test_any_bytes_are_a_call_an_error_or_nothing(data: bytes) -> None:
    found = parse(data)

    if isinstance(found, Error):
        assert json.loads(error(found))["error"]["code"] in (PARSE, REQUEST, PARAMS)


@pytest.mark.parametrize("fault", [("x" * MAX_LINE, None), ("x", {"pointer": "/" + "x" * MAX_LINE})])
def test_error_that_names_something_as_long_as_a_line_is_still_told(fault: tuple[str, Any]) -> None:
    message, data = fault

    line = error(Error(PARAMS, message, "a", data))

    assert json.loads(line) == {"jsonrpc": "2.0", "id": "a", "error": {"code": PARAMS, "message": message[:200]}}


@given(st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"d\ne", b"\n\n", b"fghijk"]), max_size=12))
def test_lines_do_not_depend_on_where_the_stream_was_cut(pieces: list[bytes]) -> None:
    def lines(*fed: bytes) -> list[bytes | str]:
        cut = Lines(most=4)
        found = [line for piece in fed for line in cut.feed(piece)] + [cut.end()]
        return ["too long" if isinstance(line, TooLong) else line for line in found]

    whole = b"".join(pieces)
    assert lines(*pieces) == lines(whole) == ["too long" if len(one) > 4 else one for one in whole.split(b"\n")]


def test_line_that_is_too_long_is_not_kept() -> None:
    cut = Lines(most=4)
    for _ in range(1000):
        assert list(cut.feed(b"xxxx")) == []
    assert cut._parts == []
    (found,) = cut.feed(b"\n")
    assert isinstance(found, TooLong)
    assert list(cut.feed(b"ok\n")) == [b"ok"]


@pytest.mark.parametrize("text", ["\n🌊", "\n\ud83d"])
def test_answer_leaves_out_what_is_none_at_the_top_and_is_one_line_of_utf_8(text: str) -> None:
    line = answer("é", {"a": None, "b": {"c": None}, "d": text})

    assert line.count(b"\n") == 1
    assert json.loads(line.decode()) == {"jsonrpc": "2.0", "id": "é", "result": {"b": {"c": None}, "d": text}}


def test_answer_that_is_no_json_or_over_a_line_is_refused() -> None:
    with pytest.raises(ValueError, match="must be at most"):
        answer(1, {"a": "x" * module_rpc.MAX_LINE})
    with pytest.raises(ValueError, match="JSON"):
        answer(1, {"a": float("nan")})


def test_the_longest_line_is_16_mib() -> None:
    assert module_rpc.MAX_LINE == 16 * 1024 * 1024
