"""Canonical JSON (RFC 8785) and what is hashed over it: digests and job keys.

Two implementations that write the same value must write the same bytes: keys sorted by UTF-16 code units, no spaces,
numbers as ECMAScript prints them, short escapes. Values without one canonical form are refused, never approximated:
NaN and infinities, integers beyond 2^53 either way, keys that are not strings, lone surrogates, foreign types.

A job key must never depend on a platform, a clock or a path. Standard library only; nothing here touches the world.
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

MAX_INT = 2**53
"""The largest integer, either way, that every reader of doubles keeps exactly."""


class CanonicalError(ValueError):
    """A value that has no canonical form."""


def dumps(value: Any) -> bytes:
    """Return the RFC 8785 form of a JSON value, as UTF-8.

    Raises CanonicalError for NaN, an infinity, an integer beyond +-2^53, a key that is no string, half of a surrogate
    pair, a value that is no JSON value, and nesting that Python cannot follow.
    """
    out: list[str] = []
    try:
        _write(value, out.append)
        return "".join(out).encode("utf-8")
    except RecursionError:
        raise CanonicalError("value: must be nested less deeply; found more levels than can be followed") from None
    except UnicodeEncodeError:
        raise CanonicalError("value: must hold whole characters; found half of a surrogate pair") from None


def sha256(value: Any) -> str:
    """Return the lower-case hex SHA-256 of `dumps(value)`; raises CanonicalError as `dumps`."""
    return hashlib.sha256(dumps(value)).hexdigest()


def job_key(module_id: str, compat: str, key_inputs: Any, stage: str | None = None) -> str:
    """Return the key under which equal work is found again: 64 hex digits, and `:<stage>` for a non-default stage.

    `compat` is the manifest's `module.compat`. Raises CanonicalError as `dumps`.
    """
    key = sha256({"compat": compat, "inputs": key_inputs, "module": module_id})
    return key if stage is None else f"{key}:{stage}"


def _write(value: Any, put: Any) -> None:
    # bool is an int to Python, so it comes first.
    if value is None or value is True or value is False:
        put({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, str):
        put(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, int):
        put(_integer(value))
    elif isinstance(value, float):
        put(_number(value))
    elif isinstance(value, dict):
        _write_object(value, put)
    elif isinstance(value, (list, tuple)):
        _write_list(value, put)
    else:
        raise CanonicalError(f"value: must be a JSON value; found a {type(value).__name__}")


def _write_object(value: dict[Any, Any], put: Any) -> None:
    for key in value:
        if not isinstance(key, str):
            raise CanonicalError(f"value: object keys must be strings; found a {type(key).__name__}")
    put("{")
    for i, key in enumerate(sorted(value, key=_utf16)):
        put("," if i else "")
        put(json.dumps(key, ensure_ascii=False))
        put(":")
        _write(value[key], put)
    put("}")


def _write_list(value: list[Any] | tuple[Any, ...], put: Any) -> None:
    put("[")
    for i, item in enumerate(value):
        put("," if i else "")
        _write(item, put)
    put("]")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _integer(value: int) -> str:
    if abs(value) > MAX_INT:
        raise CanonicalError("value: integers must lie within +-2^53; found a larger one. Write it as a string.")
    return format(value, "d")


def _number(value: float) -> str:
    """Print a double as ECMAScript does: the shortest digits that read back the same, then its rules for the point."""
    if not math.isfinite(value):
        raise CanonicalError(f"value: numbers must be finite; found {value}")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # repr() gives the shortest digits too, only its layout differs.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The value is 0.DIGITS times ten to the power of `point`.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _layout(digits, point)


def _layout(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{tail}e{point - 1:+d}"
