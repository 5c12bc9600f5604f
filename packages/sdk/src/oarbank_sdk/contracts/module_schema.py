"""A JSON Schema that a module brings along, for its results: judged itself first, then what it says of a value.

It must be JSON Schema 2020-12 in one file. Nothing is fetched: a reference that leads out of the file is refused, the
dialect's own schemas aside. Looks at no file, no clock, no network. Needs `oarbank-sdk[contracts]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oarbank_sdk import strictjson
from oarbank_sdk.contracts.faults import Fault, found
from oarbank_sdk.contracts.schema_faults import DIALECT, dialect_validator, faults, foreign_validator, unresolved

__all__ = ["ModuleSchema", "SchemaRefused"]


class SchemaRefused(Exception):
    """The file is no schema that can be used; the text says where, what must hold and what was found."""


class ModuleSchema:
    """A schema that can be used."""

    def __init__(self, data: bytes | str) -> None:
        """Read a schema from its text. Raises `SchemaRefused`."""
        try:
            schema = strictjson.loads(data)
        except strictjson.StrictJSONError as exc:
            raise SchemaRefused(str(exc)) from None
        try:
            for fault in _refused(schema):
                raise SchemaRefused(fault.line(""))
            self._validator = foreign_validator(schema)
        except RecursionError:
            raise SchemaRefused("must be nested less deeply; found more than this program can follow") from None

    def faults(self, value: Any) -> list[Fault]:
        """Return what the schema refuses in a value, in the schema's order; an empty list when it accepts it."""
        try:
            return faults(self._validator, value)
        except RecursionError:
            return [
                Fault("", "$ref", "must be judged by a schema whose references end; found one that refers to itself")
            ]


def _refused(schema: Any) -> Iterator[Fault]:
    """Yield why a value is no schema; whoever reads on after the first may meet a schema that cannot be walked."""
    if not isinstance(schema, (dict, bool)):
        yield Fault("", "type", f"must be a schema, which is an object; found {found(schema)}")
        return
    named = schema.get("$schema", DIALECT) if isinstance(schema, dict) else DIALECT
    if not isinstance(named, str) or named.rstrip("#") != DIALECT:
        yield Fault("/$schema", "$schema", f"must be {DIALECT}, or left out; found {found(named)}")
        return
    yield from faults(dialect_validator(), schema)
    for reference in unresolved(schema):
        message = f"every $ref must lead to a place in this file, for nothing is fetched; found {found(reference)}"
        yield Fault("", "$ref", message)
