"""What every generated model shares.

The generator writes fields and bounds from the schemas; this class adds what a schema does not say: numbers are finite,
and a dump uses the names of the wire (`schema`, not `schema_`). It must hold no field and no rule of its own, because
the schemas are the one source of a document's shape.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """Base of the models in `oarbank_sdk.contracts`."""

    model_config = ConfigDict(allow_inf_nan=False, serialize_by_alias=True)

    def to_value(self) -> dict[str, Any]:
        """Return the document as plain JSON values: what was set, unknown keys included, and nothing else."""
        return self.model_dump(mode="json", exclude_unset=True)
