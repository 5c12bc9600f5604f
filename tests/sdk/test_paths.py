"""The portable-path rule, one row for each way to be right or wrong."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk.paths import portable_path_fault

FINE = [
    "a",
    "out/completions.jsonl",
    "A-b_c+d@e/f.1.2",
    "_/-/+/@",
    "a" * 100,
    "/".join(["a" * 99, "b" * 100]),
    "console/lpt/com10/nullable.txt",
    "a..b",
    "x.con",
]
FAULTS = [
    ("", "must not be empty"),
    ("/etc/passwd", "must be relative"),
    ("C:/x", "must be relative"),
    ("c:x", "must be relative"),
    ("a\\b", "must use / between segments"),
    ("\\\\host\\share", "must use / between segments"),
    ("a//b", "must not hold an empty segment"),
    ("a/", "must not hold an empty segment"),
    (".", "must not hold a . segment"),
    ("a/./b", "must not hold a . segment"),
    ("..", "must not hold a .. segment"),
    ("a/../../b", "must not hold a .. segment"),
    ("...", "must not have a segment that ends with a dot"),
    ("a./b", "must not have a segment that ends with a dot"),
    (".hidden", "must not have a segment that starts with a dot"),
    ("a/.git/config", "must not have a segment that starts with a dot"),
    ("a b", "must hold only letters, digits and ._+@- between slashes"),
    ("a\n", "must hold only letters, digits and ._+@- between slashes"),
    ("a\x00b", "must hold only letters, digits and ._+@- between slashes"),
    ("file:stream", "must hold only letters, digits and ._+@- between slashes"),
    ("~/x", "must hold only letters, digits and ._+@- between slashes"),
    ("caf\u00e9", "must be ASCII"),
    ("a\u202eb", "must be ASCII"),
    ("a" * 101, "must have segments of at most 100 bytes"),
    ("/".join(["a" * 67] * 3), "must be at most 200 bytes"),
    ("con", "must not name a Windows device"),
    ("a/NUL.txt", "must not name a Windows device"),
    ("Com1.tar.gz/x", "must not name a Windows device"),
    ("lpt9", "must not name a Windows device"),
    ("aux.", "must not have a segment that ends with a dot"),
]


@pytest.mark.parametrize("path", FINE)
def test_portable_path_has_no_fault(path: str) -> None:
    assert portable_path_fault(path) is None


@pytest.mark.parametrize(("path", "fault"), FAULTS)
def test_other_path_is_told_its_fault(path: str, fault: str) -> None:
    assert portable_path_fault(path) == fault


@given(st.text(alphabet="ab./\\:~ C\n\u00e9", max_size=12))
def test_portable_path_never_leaves_its_directory(path: str) -> None:
    if portable_path_fault(path) is None:
        assert posixpath.normpath(posixpath.join("/job", path)) == f"/job/{path}"
