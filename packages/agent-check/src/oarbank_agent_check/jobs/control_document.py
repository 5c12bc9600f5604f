"""The next control document: the last one with some fields changed and a seq that is one higher.

Pure. The document is the whole state, so a field that is not carried over is lifted; who adds a stop must not lift
the duty by it. Fields that are not known stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oarbank_sdk import strictjson


def merged(current: bytes | None, changes: Mapping[str, Any], *, above: int = 0) -> dict[str, Any]:
    """Return the document that follows `current`; one that cannot be read counts as empty.

    The new seq is one higher than the document's own, and higher than `above`, the last one written.
    """
    document = _document(current)
    seq = document.get("seq")
    known = seq if isinstance(seq, int) and not isinstance(seq, bool) else 0
    return {**document, **changes, "seq": max(known, above) + 1}


def _document(data: bytes | None) -> dict[str, Any]:
    try:
        value, _ = strictjson.read(data or b"")
    except strictjson.StrictJSONError:
        return {}
    return value if isinstance(value, dict) else {}
