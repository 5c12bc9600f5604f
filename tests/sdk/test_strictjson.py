"""The strict reader: what it refuses, what it makes of numbers, and that no bytes crash it."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk import strictjson
from oarbank_sdk.strictjson import MAX_DEPTH, StrictJSONError

LARGEST = int(float.fromhex("0x1.fffffffffffffp+1023"))

REFUSED = [
    # what                               text                                  layer    keyword
    ("nothing", b"", "json", "json"),
    ("white space alone", b" \n", "json", "json"),
    ("a byte order mark", b"\xef\xbb\xbf{}", "bytes", "bom"),
    ("a byte order mark in text", "\ufeff{}", "bytes", "bom"),
    ("UTF-16", '{"a": 1}'.encode("utf-16"), "bytes", "utf-8"),
    ("Latin-1", '"\u00e9"'.encode("latin-1"), "bytes", "utf-8"),
    ("a surrogate as bytes", b'"\xed\xa0\x80"', "bytes", "utf-8"),
    ("an overlong slash", b'"\xc0\xaf"', "bytes", "utf-8"),
    ("a trailing comma", b'{"a": 1,}', "json", "json"),
    ("a comment", b"{} // x", "json", "json"),
    ("two documents", b"{} {}", "json", "json"),
    ("a leading zero", b"[02]", "json", "json"),
    ("a bare point", b"[.5]", "json", "json"),
    ("single quotes", b"{'a': 1}", "json", "json"),
    ("a raw newline in a string", b'"a\nb"', "json", "json"),
    ("NaN", b"[NaN]", "json", "json"),
    ("Infinity", b"[Infinity]", "json", "json"),
    ("-Infinity", b"-Infinity", "json", "json"),
    ("a float no double holds", b"[1e400]", "json", "number-range"),
    ("an integer no double holds", str(2**1024).encode(), "json", "number-range"),
    ("its negative", str(-(2**1024)).encode(), "json", "number-range"),
    ("an integer of thousands of digits", b"-" + b"9" * 9000, "json", "number-range"),
    ("a repeated key", b'{"a": 1, "a": 1}', "json", "duplicate-key"),
    ("a key repeated by an escape", b'{"a": 1, "\\u0061": 2}', "json", "duplicate-key"),
    ("a repeated key inside", b'[{"x": {"a": 1, "b": 2, "a": 3}}]', "json", "duplicate-key"),
    ("half a pair", b'["\\ud800"]', "json", "surrogate"),
    ("the other half", b'["\\uDFFF x"]', "json", "surrogate"),
    ("half a pair in a key", b'{"\\ud800": 1}', "json", "surrogate"),
    ("half a pair in text", '"\ud800"', "json", "surrogate"),
    ("nesting past the limit", b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "json", "depth"),
    ("nesting of thousands of levels", b"[" * 100_000, "json", "depth"),
    ("objects past the limit", b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "json", "depth"),
]

READ = [
    # what                              text                           value
    ("white space around", b" \t\r\n{} \r\n", {}),
    ("an integral float", b"[5.0, 1e2, -3.0]", [5, 100, -3]),
    ("minus zero", b"-0.0", 0),
    ("a fraction", b"0.1", 0.1),
    ("a subnormal", b"1e-320", 1e-320),
    ("less than any double", b"1e-400", 0),
    ("the largest exact integral float", b"9007199254740992.0", 2**53),
    ("an integral float that is not exact", b"1e21", 1e21),
    ("the first integral float that is not exact", b"9007199254740994.0", 9007199254740994.0),
    ("the largest integer that a double holds", str(LARGEST).encode(), LARGEST),
    ("its negative", str(-LARGEST).encode(), -LARGEST),
    ("a long integer", b"170141183460469231731687303715884105728", 2**127),
    ("a whole pair", b'"\\ud83d\\ude00"', "\U0001f600"),
    ("an escaped backslash before u", b'"\\\\ud800"', "\\ud800"),
    ("the same key in two objects", b'[{"a": 1}, {"a": 1}]', [{"a": 1}, {"a": 1}]),
    ("nesting up to the limit", b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
    ("brackets in a string", json.dumps("[" * 1000).encode(), "[" * 1000),
    ("many brackets side by side", b"[" + b"[]," * 500 + b"[]]", [[]] * 501),
]


@pytest.mark.parametrize(("text", "layer", "keyword"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_refused(text: str | bytes, layer: str, keyword: str) -> None:
    with pytest.raises(StrictJSONError) as caught:
        strictjson.loads(text)

    assert (caught.value.layer, caught.value.keyword) == (layer, keyword)
    assert "; found " in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("text", "value"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_read(text: bytes, value: Any) -> None:
    found = strictjson.loads(text)

    assert found == value or value is None
    assert type(found) is type(value) or value is None


def test_oddities_come_with_their_places_and_the_last_key_wins() -> None:
    value, oddities = strictjson.read(
        b'{"x": [1, {"a": 1, "a": 1e400}], "y~/": "\\ud800", "a": 1, "a": {"b": 2, "b": 3}}'
    )

    assert value == {"x": [1, {"a": math.inf}], "y~/": "\ud800", "a": {"b": 3}}
    assert {(oddity.path, oddity.keyword) for oddity in oddities} == {
        ((), "duplicate-key"),
        (("x", 1), "duplicate-key"),
        (("x", 1, "a"), "number-range"),
        (("y~/",), "surrogate"),
        (("a",), "duplicate-key"),
    }
    assert type(value) is dict
    assert type(value["x"][1]) is dict


def test_refusal_says_what_was_found_and_where() -> None:
    with pytest.raises(StrictJSONError, match=r"^must be JSON; found at line 2 column 6: expecting value$"):
        strictjson.loads('{\n"a": }')
    with pytest.raises(StrictJSONError, match=r'^must hold each key once; found "a" twice$'):
        strictjson.loads('{"b": 0, "a": 1, "c": 2, "a": 3}')
    with pytest.raises(StrictJSONError, match=r'^must hold each key once; found "k{79} twice$'):
        strictjson.loads(json.dumps({"k" * 99: 1})[:-1] + "," + json.dumps({"k" * 99: 2})[1:])


def test_negative_number_out_of_range_keeps_its_sign() -> None:
    assert strictjson.read(b"[-1e400, -" + b"9" * 400 + b"]")[0] == [-math.inf, -math.inf]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_what_json_writes_reads_back_equal(value: Any) -> None:
    assert strictjson.loads(json.dumps(value)) == value
    assert strictjson.loads(json.dumps(value, ensure_ascii=False).encode("utf-8")) == value


@given(st.binary(max_size=40) | st.text(alphabet='[]{}",:0123456789.eE+-\\ud8 trufalsn', max_size=30).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = strictjson.loads(data)
    except StrictJSONError:
        return
    assert value == json.loads(data)
