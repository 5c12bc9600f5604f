"""The one strict JSON reader in front of every judge of a document.

Python's decoder takes more than JSON (NaN, a last key that silently wins, half of a surrogate pair) and knows two kinds
of number where JSON Schema knows one. Schemas, models and rules all judge the value that this module returns, so they
cannot disagree about what the text said. `loads` refuses every oddity. `read` reports the oddities that JSON's grammar
allows, each with the place where it sits, for readers that must tolerate some of them.

It must never guess: a text is read exactly, or refused with the reason. Standard library only; no file, no clock.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 128
"""Arrays and objects may be nested this deep; a decoder's own limit depends on the Python that runs it."""

EXACT = 2**53
"""Integral floats up to this size become int; beyond it a double no longer tells neighbouring integers apart."""

_MAX_DIGITS = 310  # one more than the largest double has; Python refuses to convert thousands
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BOM = "\ufeff"


class StrictJSONError(ValueError):
    """A text that not every JSON reader understands the same way.

    `layer` is `bytes` or `json`, `keyword` names the rule: `bom`, `utf-8`, `json`, `depth`, `duplicate-key`,
    `number-range` or `surrogate`.
    """

    def __init__(self, layer: str, keyword: str, message: str) -> None:
        super().__init__(message)
        self.layer = layer
        self.keyword = keyword


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something JSON's grammar allows and readers take differently."""

    path: tuple[str | int, ...]  # object keys and list indices from the top
    keyword: str  # duplicate-key, number-range or surrogate
    message: str


def loads(data: str | bytes) -> Any:
    """Return the value of one JSON document.

    Integral floats up to 2^53 come back as int. Raises StrictJSONError for a byte order mark, bytes that are not UTF-8,
    text that is not JSON (NaN and Infinity included), nesting deeper than `MAX_DEPTH`, a repeated key, a number that
    no double holds, and half of a surrogate pair.
    """
    value, oddities = read(data)
    if oddities:
        raise StrictJSONError("json", oddities[0].keyword, oddities[0].message)
    return value


def read(data: str | bytes) -> tuple[Any, list[Oddity]]:
    """Return the value and its oddities instead of refusing them.

    The last of repeated keys wins; a number that no double holds is an infinity. Raises StrictJSONError as `loads` for
    what no JSON reader may take.
    """
    text = _text(data)
    parser = _Parser()
    try:
        value = json.loads(
            text,
            parse_float=parser.number,
            parse_int=parser.integer,
            parse_constant=_constant,
            object_pairs_hook=parser.mapping,
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno} column {exc.colno}"
        raise StrictJSONError("json", "json", f"must be JSON; found at {where}: {_lower(exc.msg)}") from None
    may_be_deep = text.count("[") + text.count("{") > MAX_DEPTH
    if parser.odd or may_be_deep or _ESCAPED_SURROGATE.search(text) or _SURROGATE.search(text):
        return _walk(value)
    return value, []


class _Repeated(dict[str, Any]):
    """An object whose text held a key twice; `_walk` turns it into a plain dict."""

    twice: str


class _Parser:
    """Hooks of one read; `odd` says that the value deserves a walk."""

    def __init__(self) -> None:
        self.odd = False

    def number(self, text: str) -> int | float:
        value = float(text)
        if math.isinf(value):
            self.odd = True
        elif value.is_integer() and abs(value) <= EXACT:
            return int(value)
        return value

    def integer(self, text: str) -> int | float:
        try:
            value = int(text) if len(text) <= _MAX_DIGITS else 10**_MAX_DIGITS
            float(value)
        except OverflowError:
            self.odd = True
            return -math.inf if text.startswith("-") else math.inf
        return value

    def mapping(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) == len(pairs):
            return out
        self.odd = True
        marked = _Repeated(out)
        seen: set[str] = set()
        marked.twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return marked


def _text(data: str | bytes) -> str:
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as exc:
            found = f"byte 0x{data[exc.start]:02x} at offset {exc.start}"
            raise StrictJSONError("bytes", "utf-8", f"must be UTF-8; found {found}") from None
    if text.startswith(_BOM):
        raise StrictJSONError("bytes", "bom", "must start with JSON; found a byte order mark. Save it as plain UTF-8.")
    return text


def _constant(text: str) -> Any:
    raise StrictJSONError("json", "json", f"must be JSON; found {text}, which JSON does not have")


def _too_deep() -> StrictJSONError:
    return StrictJSONError("json", "depth", f"must be nested at most {MAX_DEPTH} levels deep; found more")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _walk(root: Any) -> tuple[Any, list[Oddity]]:
    """Find the oddities; without recursion, since depth is one of them."""
    oddities: list[Oddity] = []
    if isinstance(root, _Repeated):
        root = _plain(root, (), oddities)
    todo: list[tuple[Any, tuple[str | int, ...]]] = [(root, ())]
    while todo:
        value, path = todo.pop()
        if isinstance(value, str) and _SURROGATE.search(value):
            oddities.append(_surrogate(path))
        elif isinstance(value, float) and math.isinf(value):
            message = "must be a number that a double holds, at most 1.8e308; found one beyond it"
            oddities.append(Oddity(path, "number-range", message))
        elif isinstance(value, (dict, list)):
            if len(path) >= MAX_DEPTH:
                raise _too_deep()
            todo.extend(_children(value, path, oddities))
    return root, oddities


def _children(
    value: dict[str, Any] | list[Any], path: tuple[str | int, ...], oddities: list[Oddity]
) -> list[tuple[Any, tuple[str | int, ...]]]:
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, child in pairs:
        if isinstance(key, str) and _SURROGATE.search(key):
            oddities.append(_surrogate(path))
        if isinstance(child, _Repeated):
            value[key] = _plain(child, (*path, key), oddities)  # type: ignore[index]
    # Reversed, because the stack hands out its last entry first and reports read best in document order.
    return [(value[key], (*path, key)) for key, _ in reversed(pairs)]  # type: ignore[index]


def _plain(value: _Repeated, path: tuple[str | int, ...], oddities: list[Oddity]) -> dict[str, Any]:
    message = f"must hold each key once; found {json.dumps(value.twice)[:80]} twice"
    oddities.append(Oddity(path, "duplicate-key", message))
    return dict(value)


def _surrogate(path: tuple[str | int, ...]) -> Oddity:
    return Oddity(path, "surrogate", "must hold whole characters; found half of a surrogate pair")
