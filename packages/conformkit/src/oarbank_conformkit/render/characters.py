"""Text that others wrote, made safe to show: in a terminal, in XML, in HTML. Pure.

Names and details quote what a runner printed. A control character would move a terminal's cursor and is not allowed in
XML; half of a surrogate pair cannot be encoded at all; a character that turns the direction of writing lets a line say
something else than it holds. Each becomes a visible sign, and nothing else is changed.
"""

from __future__ import annotations

import html

_REPLACED = "\N{REPLACEMENT CHARACTER}"
_TURNS = (0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_NEVER = (*range(0x80, 0xA0), 0x2028, 0x2029, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)
_SIGNS = (
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
    | {0x7F: "\N{SYMBOL FOR DELETE}"}
    | dict.fromkeys((*_TURNS, *_NEVER), _REPLACED)
)


def visible(text: str) -> str:
    """Return the text with a sign in place of each character that must not be shown as it is; LF and tab stay."""
    return text.translate(_SIGNS)


def escaped(text: object) -> str:
    """Return a value as the text of an HTML or XML element or of a quoted attribute."""
    return html.escape(visible(str(text)))
