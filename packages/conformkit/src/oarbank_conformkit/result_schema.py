"""The schema of a module's results, as the manifest names it: what a result's payload must keep.

Pure: bytes in, a value out. A schema that cannot be used is a value too, with the reason; nothing is ever fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.module_schema import ModuleSchema, SchemaRefused


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """The file that the manifest names; `fault` says why it is no schema that can be used, and where in it."""

    path: str  # in the bundle
    fault: str | None = None
    schema: ModuleSchema | None = None

    def faults(self, payload: Any) -> list[Fault]:
        """Return what the schema refuses in a payload; nothing where it cannot be used."""
        return [] if self.schema is None else self.schema.faults(payload)


def result_schema(path: str, data: bytes) -> ResultSchema:
    """Return the schema in a file of the bundle."""
    try:
        return ResultSchema(path, schema=ModuleSchema(data))
    except SchemaRefused as exc:
        return ResultSchema(path, str(exc))
