"""The example documents beside the schemas, for tests that go through all of them.

Reads `schemas/examples` of this checkout and nothing else; says what is there and judges nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from oarbank_sdk import strictjson

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "schemas"


@dataclass(frozen=True)
class Example:
    """One document; `pointer` and `keyword` say where and by which rule it must be refused, None for a good one."""

    kind: str
    name: str
    data: bytes
    pointer: str | None = None
    keyword: str | None = None

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


def good() -> list[Example]:
    """Return the documents that everybody accepts."""
    return [
        Example(path.parts[-3], path.stem, path.read_bytes())
        for path in sorted((SCHEMAS / "examples").glob("*/good/*.json"))
    ]


def bad() -> list[Example]:
    """Return the documents with one fault each; one that `expect.json` does not name has no pointer."""
    found = []
    for path in sorted((SCHEMAS / "examples").glob("*/bad/*.json")):
        if path.name != "expect.json":
            expected = expectations(path.parts[-3]).get(path.name, {})
            place = (expected.get("pointer"), expected.get("keyword"))
            found.append(Example(path.parts[-3], path.stem, path.read_bytes(), *place))
    return found


def expectations(kind: str) -> dict[str, dict[str, str]]:
    """Return a contract's `bad/expect.json`."""
    expected: dict[str, dict[str, str]] = json.loads((SCHEMAS / "examples" / kind / "bad" / "expect.json").read_text())
    return expected


def readable(kind: str) -> list[object]:
    """Return the values of all examples of a contract that the strict reader takes; a judge never sees the others."""
    values = []
    for example in [*good(), *bad()]:
        if example.kind == kind:
            try:
                values.append(strictjson.loads(example.data))
            except strictjson.StrictJSONError:
                assert example.keyword in ("json", "bom", "surrogate", "duplicate-key", "number-range")
    return values
