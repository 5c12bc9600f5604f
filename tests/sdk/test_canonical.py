"""Canonical JSON against an independent writer, the vectors of RFC 8785, and the three refusals."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk import canonical
from oarbank_sdk.canonical import CanonicalError

# RFC 8785, appendix B: IEEE 754 bits and what ECMAScript prints.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

WRITTEN = [
    ("the ordinary decimals", [0.5, 0.1, -0.25, 1.5, 100.25, 120.0], b"[0.5,0.1,-0.25,1.5,100.25,120]"),
    ("two digits and an exponent", [1.2e25, -1.2e-9, 1e100], b"[1.2e+25,-1.2e-9,1e+100]"),
    ("literals", [None, True, False], b"[null,true,false]"),
    ("a whole float", 3.0, b"3"),
    ("minus zero", -0.0, b"0"),
    ("the largest integer", 2**53, b"9007199254740992"),
    ("the smallest integer", -(2**53), b"-9007199254740992"),
    ("short escapes", '\b\t\n\f\r"\\/\x0f\x7f', b'"\\b\\t\\n\\f\\r\\"\\\\/\\u000f\x7f"'),
    ("plain characters", "\u20ac\U0001f600\u2028", '"\u20ac\U0001f600\u2028"'.encode()),
    # By UTF-16 code units an emoji (d83d) comes before a Hebrew presentation form (fb33); by code points after it.
    (
        "keys by code units",
        {"\ufb33": 1, "\U0001f600": 2, "1": 3, "\r": 4},
        '{"\\r":4,"1":3,"\U0001f600":2,"\ufb33":1}'.encode(),
    ),
    ("an empty key and empty values", {"": [], "a": {}}, b'{"":[],"a":{}}'),
    ("a tuple as a list", (1, (2,)), b"[1,[2]]"),
]

REFUSED = [
    ("NaN", float("nan"), "finite"),
    ("infinity", [float("-inf")], "finite"),
    ("an integer beyond 2^53", 2**53 + 1, "within"),
    ("an integer beyond -2^53", {"n": -(2**53) - 1}, "within"),
    ("a number as a key", {1: 2}, "keys must be strings"),
    ("null as a key", {None: 2}, "keys must be strings"),
    ("half a pair", "\ud800", "whole characters"),
    ("half a pair in a key", {"\udfff": 1}, "whole characters"),
    ("bytes", b"x", "JSON value"),
    ("a set", {1}, "JSON value"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS, ids=[text for _, text in NUMBERS])
def test_number_as_ecmascript_prints_it(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert canonical.dumps(number) == text.encode()


@pytest.mark.parametrize(("value", "text"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_written(value: Any, text: bytes) -> None:
    assert canonical.dumps(value) == text


@pytest.mark.parametrize(("value", "reason"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_value_without_one_canonical_form_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(CanonicalError, match=reason):
        canonical.dumps(value)


def test_nesting_that_python_cannot_follow_is_refused() -> None:
    value: list[Any] = []
    for _ in range(200_000):
        value = [value]

    with pytest.raises(CanonicalError, match="nested"):
        canonical.dumps(value)

    while value:  # taken apart by hand: freeing it all at once would recurse as deeply
        value = value.pop()


def test_digest_is_over_the_canonical_bytes() -> None:
    assert canonical.sha256({"b": 1, "a": [1.0]}) == hashlib.sha256(b'{"a":[1],"b":1}').hexdigest()


def test_job_key_carries_the_stage_only_when_there_is_one() -> None:
    key = canonical.job_key("dev.codonic.oarbank.toy", "toy1", {"n": 1000})

    assert key == "2950ad61ba317a9e660b5c397b601989542951dc3964f4fff39e9142a6d7f533"
    assert canonical.job_key("dev.codonic.oarbank.toy", "toy1", {"n": 1000}, "batch") == key + ":batch"


def test_job_key_depends_on_every_input() -> None:
    base = ("a.b", "c1", {"n": 1})
    others = [("a.c", "c1", {"n": 1}), ("a.b", "c2", {"n": 1}), ("a.b", "c1", {"n": 2}), ("a.b", "c1", {"m": 1})]

    assert len({canonical.job_key(*one) for one in [base, *others]}) == 5
    assert canonical.job_key("a.b", "c1", {"n": 1.0}) == canonical.job_key(*base)


NUMBER = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=15,
)


@given(JSON)
def test_independent_writer_writes_the_same_bytes(value: Any) -> None:
    assert canonical.dumps(value) == rfc8785.dumps(value)


@given(st.binary(min_size=8, max_size=8))
def test_independent_writer_prints_every_double_alike(bits: bytes) -> None:
    (number,) = struct.unpack(">d", bits)
    if number != number or number in (float("inf"), float("-inf")):
        with pytest.raises(CanonicalError):
            canonical.dumps(number)
    else:
        assert canonical.dumps(number) == rfc8785.dumps(number)
        assert float(canonical.dumps(number)) == number
