"""A token's bytes, of both families of tokenizers; no byte is lost on the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.engines.mlx_pieces import is_byte_level, piece_of

PIECES = [
    # spelling          byte-level  bytes
    ("Paris", True, b"Paris"),
    ("ĠParis", True, b" Paris"),
    ("Ċ", True, b"\n"),
    ("ðŁĮ", True, b"\xf0\x9f\x8c"),  # the first three bytes of a wave
    ("Ĭ", True, b"\x8a"),  # and its last
    ("Ł", True, b"\x9f"),
    ("Ń", True, b"\xad"),  # the soft hyphen, last of those that do not print
    ("", True, b""),
    ("東", True, "東".encode()),  # from outside the alphabet
    ("▁Paris", False, b" Paris"),
    ("▁▁", False, b"  "),
    ("naïve", False, "naïve".encode()),
    ("<0x0A>", False, b"\n"),
    ("<0xF0>", False, b"\xf0"),
    ("<0xZZ>", False, b"<0xZZ>"),
    ("<0x0A>", True, b"<0x0A>"),
    ("ĠParis", False, "ĠParis".encode()),
]


@pytest.mark.parametrize(("spelling", "byte_level", "expected"), PIECES)
def test_spelling_becomes_its_bytes(spelling: str, byte_level: bool, expected: bytes) -> None:
    assert piece_of(spelling, byte_level=byte_level) == expected


DECODERS = [
    ({"type": "ByteLevel"}, True),
    ({"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "ByteLevel"}]}, True),
    ({"type": "Sequence", "decoders": [{"type": "Replace"}, {"type": "ByteFallback"}, {"type": "Fuse"}]}, False),
    ({"type": "Metaspace"}, False),
    ({}, False),
    (None, False),
]


@pytest.mark.parametrize(("decoder", "expected"), DECODERS)
def test_family_is_told_by_the_decoder(decoder: object, expected: bool) -> None:
    assert is_byte_level(decoder) is expected


@given(st.binary(min_size=1, max_size=8))
def test_every_byte_has_one_character_and_comes_back(data: bytes) -> None:
    spelled = {piece_of(chr(code), byte_level=True): chr(code) for code in (*range(0x21, 0x7F), *range(0xA1, 0x144))}
    spelled.pop("\N{SOFT HYPHEN}".encode())  # no character of the alphabet

    assert len(spelled) == 256
    assert piece_of("".join(spelled[bytes([byte])] for byte in data), byte_level=True) == data
