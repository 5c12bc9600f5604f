"""JSON-RPC 2.0 as a module's coordinator side speaks it: bytes to lines, lines to calls, answers to lines.

It decides alone what a line means and which error answers it; module.py reads, calls and writes. Any bytes are either
a call or one error answer: nothing here raises for what a host sent. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from oarbank_sdk import strictjson

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line, its line feed left out."""

PARSE, REQUEST, UNKNOWN_METHOD, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
NO_SHARED_VERSION, NOT_PERMITTED, NOT_ADVERTISED, CANCELLED = -32001, -32002, -32003, -32004

_SHOWN = 200  # characters of something found, in a message
_ID_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Call:
    """A request, or a notification where `wants_answer` is false."""

    method: str
    params: dict[str, Any]
    id: str | int | float | None
    wants_answer: bool


@dataclass(frozen=True, slots=True)
class Error:
    """An error answer; `id` is None where the line did not say whose it is."""

    code: int
    message: str
    id: str | int | float | None = None
    data: Any = None


class TooLong:
    """Stands for a line of more than `MAX_LINE` bytes, whose bytes are dropped as they come."""


class Lines:
    """Cuts a stream into lines, and holds no more of it than one line."""

    def __init__(self, most: int = MAX_LINE) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """The lines that `data` completes, without their ends."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            self._hold(piece)
            yield self._line()
        self._hold(rest)

    def end(self) -> bytes | TooLong:
        """What came behind the last line feed."""
        return self._line()

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._most:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)

    def _line(self) -> bytes | TooLong:
        line = TooLong() if self._size > self._most else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line


def parse(line: bytes | TooLong) -> Call | Error | None:
    """What a line asks for. None: nothing, for a blank line, or an answer to a question that nobody here asked."""
    if isinstance(line, TooLong):
        return Error(REQUEST, f"line: must be at most {MAX_LINE} bytes; found more")
    if not line.strip():
        return None
    try:
        value, _ = strictjson.read(line)
    except (strictjson.StrictJSONError, RecursionError) as fault:
        return Error(PARSE, f"line: {fault}"[:_SHOWN])
    if not isinstance(value, dict):
        return Error(REQUEST, "line: must be one object; found another value")
    return _call(value)


def _call(value: dict[str, Any]) -> Call | Error | None:
    found = value.get("id")
    usable = isinstance(found, (str, int, float)) and not isinstance(found, bool) and _comes_back(found)
    named = found if usable else None
    if "method" not in value and value.get("jsonrpc") == "2.0" and ("result" in value or "error" in value):
        return None
    if value.get("jsonrpc") != "2.0":
        return Error(REQUEST, "/jsonrpc: must be 2.0", named)
    if "id" in value and not usable:
        return Error(REQUEST, f"/id: must be text of at most {_ID_CHARS} characters, or a number")
    method = value.get("method")
    if not isinstance(method, str) or len(method) > _SHOWN:
        return Error(REQUEST, f"/method: must be text of at most {_SHOWN} characters", named)
    params = value.get("params", {})
    if params is not None and not isinstance(params, dict):
        return Error(PARAMS, "/params: must be an object", named) if usable else None
    return Call(method, params or {}, named, usable)


def _comes_back(value: str | int | float) -> bool:
    """Whether an id can be sent back as it came: a number that no double holds cannot, nor text as long as a line."""
    return len(value) <= _ID_CHARS if isinstance(value, str) else abs(value) <= 2**53


def answer(call_id: str | int | float | None, result: dict[str, Any]) -> bytes:
    """The line of a result; fields that are None are left out. Raises ValueError and TypeError for what is no JSON."""
    said = {key: value for key, value in result.items() if value is not None}
    return _line({"jsonrpc": "2.0", "id": call_id, "result": said})


def error(fault: Error) -> bytes:
    """The line of an error."""
    told: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        told["data"] = fault.data
    try:
        return _line({"jsonrpc": "2.0", "id": fault.id, "error": told})
    except ValueError:  # it names what was found, which may be as long as a line
        told = {"code": fault.code, "message": fault.message[:_SHOWN]}
        return _line({"jsonrpc": "2.0", "id": fault.id, "error": told})


def notification(method: str, params: dict[str, Any]) -> bytes:
    """The line of a notification. Raises as `answer`."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def _line(value: dict[str, Any]) -> bytes:
    # ASCII alone: half of a surrogate pair in a text then cannot break the line.
    try:
        line = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which an escape can say
        line = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    if len(line) > MAX_LINE:
        raise ValueError(f"must be at most {MAX_LINE} bytes as a line; found {len(line)}")
    return line + b"\n"
