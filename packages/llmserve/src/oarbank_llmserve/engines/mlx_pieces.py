"""A token's bytes, from how its tokenizer spells it: they may end inside a character, and join to whole ones.

Two families cover the tokenizers that models come with. Byte-level BPE spells every byte as one printable character;
SentencePiece spells a space as a low bar and a lone byte as `<0x0A>`. Pure: text in, bytes out; mlx.py reads the
tokenizer. It must never decode: a replacement character once made is a character lost.
"""

from __future__ import annotations

import re
from typing import Any

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how SentencePiece spells a space
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE's characters: a byte that prints as Latin-1 is itself, the others are those from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable]
    spelled = {chr(byte): byte for byte in printable}
    return spelled | {chr(0x100 + index): byte for index, byte in enumerate(hidden)}


_ALPHABET = _byte_alphabet()


def is_byte_level(decoder: Any) -> bool:
    """Whether the `decoder` of a tokenizer.json is byte-level BPE's, alone or in a sequence."""
    if not isinstance(decoder, dict):
        return False
    parts = decoder.get("decoders")
    if isinstance(parts, list):
        return any(is_byte_level(part) for part in parts)
    return decoder.get("type") == "ByteLevel"


def piece_of(spelling: str, *, byte_level: bool) -> bytes:
    """The bytes of a token of the vocabulary. An added token is spelled as it is meant: not for this function."""
    if not byte_level:
        lone = _BYTE.fullmatch(spelling)
        return bytes([int(lone[1], 16)]) if lone else spelling.replace(_SPACE, " ").encode()
    found = [_ALPHABET.get(character) for character in spelling]
    if None in found:  # a token from outside the alphabet: some vocabularies hold a few
        return spelling.encode()
    return bytes(byte for byte in found if byte is not None)
