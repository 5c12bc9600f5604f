"""A report as one JSON object. Pure."""

from __future__ import annotations

import json

from oarbank_conformkit.report import Report, document


def render(report: Report) -> str:
    """Return the `conformance-report-1` document as text that ends in LF."""
    return json.dumps(document(report), ensure_ascii=False, allow_nan=False, indent=2) + "\n"
