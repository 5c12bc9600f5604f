"""Bytes in, text out: where the bytes were cut must not matter."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oarbank_llmserve.text import TextStream, printable


def streamed(pieces: list[bytes], stops: tuple[str, ...] = ()) -> tuple[str, bool]:
    stream = TextStream(stops)
    text = "".join([stream.feed(piece) for piece in pieces])
    return text + stream.end(), stream.stopped


ROWS: list[tuple[str, list[bytes], tuple[str, ...], str]] = [
    # behaviour                               pieces                               stops              text
    ("plain text passes", [b"a", b"b c"], (), "ab c"),
    ("a character over two tokens", [b"na\xc3", b"\xafve"], (), "naïve"),
    ("a character over four tokens", [b"\xf0", b"\x9f", b"\x8c", b"\x8a!"], (), "🌊!"),
    ("a character that never ends", [b"ab", b"\xe6\x9d"], (), "ab\ufffd"),
    ("bytes that are no UTF-8", [b"a\xffb"], (), "a\ufffdb"),
    ("a start byte, then ASCII", [b"\xc3", b"A"], (), "\ufffdA"),
    ("a stop in one token", [b"one\ntwo"], ("\n",), "one"),
    ("a stop over three tokens", [b"abc<", b"en", b"d>xyz"], ("<end>",), "abc"),
    ("what only began like a stop", [b"abc<", b"en", b"ter>"], ("<end>",), "abc<enter>"),
    ("a stop begun at the end", [b"abc<en"], ("<end>",), "abc<en"),
    ("the stop at the very start", [b"STOP now"], ("STOP",), ""),
    ("a stop of a split character", [b"a\xf0\x9f", b"\x8c\x8ab"], ("🌊",), "a"),
    ("the stop that is complete first", [b"abcdef"], ("abcdef", "cd"), "ab"),
    ("the longest of those complete at once", [b"abcd"], ("cd", "bcd"), "a"),
    ("a stop that overlaps itself", [b"aab", b"aaab"], ("aaab",), "aab"),
    ("begun twice", [b"ab", b"aba", b"bac"], ("abac",), "abab"),
    ("nothing at all", [], ("x",), ""),
    ("empty pieces", [b"", b"a", b""], (), "a"),
]


@pytest.mark.parametrize(("pieces", "stops", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_text(pieces: list[bytes], stops: tuple[str, ...], expected: str) -> None:
    assert streamed(pieces, stops)[0] == expected


def test_certain_text_comes_at_once() -> None:
    stream = TextStream(("\n\n",))

    assert [stream.feed(b"one"), stream.feed(b" two\n"), stream.feed(b"three\n"), stream.feed(b"\n!")] == [
        "one",
        " two",
        "\nthree",
        "",
    ]
    assert stream.stopped


def test_nothing_comes_after_a_stop() -> None:
    stream = TextStream((".",))

    assert (stream.feed(b"a.b"), stream.feed(b"c"), stream.end()) == ("a", "", "")


STOPS = st.lists(st.text("ab\xef", min_size=1, max_size=4), max_size=3).map(tuple)


@st.composite
def cut(draw: st.DrawFn, data: st.SearchStrategy[bytes]) -> tuple[bytes, list[bytes]]:
    whole = draw(data)
    at = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    return whole, [whole[a:b] for a, b in zip([0, *at], [*at, len(whole)], strict=True)]


@given(cut(st.binary(max_size=40) | st.text(max_size=20).map(str.encode)), STOPS)
@example((b"\xf0\x9f\x8c", [b"\xf0", b"\x9f", b"\x8c"]), ())
def test_any_cut_of_the_bytes_gives_the_same_text(cuts: tuple[bytes, list[bytes]], stops: tuple[str, ...]) -> None:
    whole, pieces = cuts

    assert streamed(pieces, stops) == streamed([whole], stops)
    assert streamed([bytes([byte]) for byte in whole], stops) == streamed([whole], stops)


def first_complete(text: str, stops: tuple[str, ...]) -> str:
    """The definition, spelled out: character by character, the first moment a stop is complete."""
    for end in range(1, len(text) + 1):
        ends = [stop for stop in stops if text[:end].endswith(stop)]
        if ends:
            return text[: end - max(map(len, ends))]
    return text


@given(cut(st.text("ab\xef", max_size=30).map(str.encode)), STOPS)
def test_stop_strings_are_exact_over_any_cut(cuts: tuple[bytes, list[bytes]], stops: tuple[str, ...]) -> None:
    whole, pieces = cuts
    expected = first_complete(whole.decode(), stops)

    assert streamed(pieces, stops) == (expected, expected != whole.decode())


@given(cut(st.binary(max_size=40)))
def test_without_stops_the_text_is_the_decoded_whole(cuts: tuple[bytes, list[bytes]]) -> None:
    whole, pieces = cuts

    assert streamed(pieces)[0] == whole.decode(errors="replace")


def test_control_characters_do_not_reach_a_terminal() -> None:
    assert printable("a\x1b[31mb\tc\nd\x9b\x07\r") == "a\ufffd[31mb\tc\nd\ufffd\ufffd\ufffd"
