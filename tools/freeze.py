"""Keep schemas/frozen.json, what others have built on: `hatch run gen:freeze` updates it, `--check` compares.

Frozen is what schemas/README.md calls so. For each such contract the file holds a digest of the whole schema, words
included, and its shape: every place of a document with what is asked there. An update takes new words and new optional
fields with a default; it refuses everything else, because a document or a reader of today would break: that is a new
file with the next major. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[1] / "schemas"
WORDS = {"$schema", "$id", "$defs", "title", "description", "examples"}
NESTED = {"properties", "required", "items", "additionalProperties", "anyOf", "allOf", "propertyNames"}
Shape = dict[str, dict[str, Any]]


def frozen_kinds(folder: Path = SCHEMAS) -> list[str]:
    """Return the contracts that the README calls frozen."""
    return re.findall(r"^\| `([a-z0-9-]+)` \|.*\| frozen \|$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)


def expanded(kind: str, folder: Path = SCHEMAS) -> dict[str, Any]:
    """Return a schema with every `$ref` replaced by what it refers to, so that shared definitions count too."""

    def expand(node: Any, home: Path, seen: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [expand(one, home, seen) for one in node]
        if not isinstance(node, dict):
            return node
        rest = {key: expand(value, home, seen) for key, value in node.items() if key not in ("$ref", "$defs")}
        if "$ref" not in node:
            return rest
        name, _, pointer = node["$ref"].partition("#")
        file = home.parent / name if name else home
        place = f"{file.name}#{pointer}"
        if place in seen:  # a schema that holds itself: named, not unrolled
            return rest | {"$ref": place}
        target = json.loads(file.read_text("utf-8"))
        for step in pointer.strip("/").split("/") if pointer else []:
            target = target[step]
        return expand(target, file, (*seen, place)) | rest

    path = folder / f"{kind}.schema.json"
    return expand(json.loads(path.read_text("utf-8")), path, ())


def shape(schema: Any) -> Shape:
    """Return every place of a document, as a pointer of keys, with what a schema asks of it; words are left out."""
    return dict(_places(schema, ""))


def _places(schema: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(schema, dict):
        yield place, {"is": schema}
        return
    asked = {key: value for key, value in schema.items() if key not in WORDS | NESTED}
    yield place, asked
    for name, child in schema.get("properties", {}).items():
        for where, what in _places(child, f"{place}/{name}"):
            yield where, what | ({"required": name in schema.get("required", [])} if where == f"{place}/{name}" else {})
    for key, step in (("items", "[]"), ("additionalProperties", "{}"), ("propertyNames", "{name}")):
        if key in schema:
            yield from _places(schema[key], f"{place}/{step}")
    for key in ("anyOf", "allOf"):
        for i, child in enumerate(schema.get(key, [])):
            yield from _places(child, f"{place}/{key}:{i}")


def record(kind: str, folder: Path = SCHEMAS) -> dict[str, Any]:
    """Return what frozen.json keeps of a contract."""
    schema = expanded(kind, folder)
    text = json.dumps(schema, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "shape": shape(schema)}


def breaks(old: Shape, new: Shape) -> list[str]:
    """Return what a change takes away from whoever built on `old`; empty when it adds optional fields alone."""
    found = []
    for place, asked in old.items():
        if place not in new:
            found.append(f"{place or '/'}: must stay; found it removed or renamed")
        elif new[place] != asked:
            found.append(f"{place or '/'}: must ask what it asked; found {_short(new[place])} for {_short(asked)}")
    for place in new.keys() - old.keys():
        parent, _, name = place.rpartition("/")
        if parent in old and new[place].get("required", True):
            found.append(f"{place}: a new field must be optional; found a required one or another kind of place")
        elif parent in old and "default" not in new[place]:
            found.append(f"{place}: a new field must have a default; found none for {name}")
    return sorted(found)


def _short(asked: dict[str, Any]) -> str:
    return json.dumps(asked, sort_keys=True)[:80]


def compare(folder: Path = SCHEMAS) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return what frozen.json should hold, which contracts differ from it, and what the changes break."""
    path = folder / "frozen.json"
    old = json.loads(path.read_text("utf-8")) if path.exists() else {}
    new = {kind: record(kind, folder) for kind in frozen_kinds(folder)}
    broken = [f"{kind}: must stay frozen; found it gone from README.md" for kind in old.keys() - new.keys()]
    for kind in old.keys() & new.keys():
        broken += [f"{kind}: {one}" for one in breaks(old[kind]["shape"], new[kind]["shape"])]
    return new, sorted(kind for kind in old.keys() | new.keys() if old.get(kind) != new.get(kind)), sorted(broken)


def main(argv: list[str], folder: Path = SCHEMAS) -> int:
    """Update frozen.json or compare it; 1 when it differs or the change needs a new major."""
    new, changed, broken = compare(folder)
    for one in broken:
        print(f"schemas/{one}. That needs the next major, in a file beside this one.")
    if broken:
        return 1
    if "--check" in argv:
        for kind in changed:
            print(f"schemas/frozen.json: /{kind}: must be what the schema says; found another digest. "
                  "Have the change reviewed and run `hatch run gen:freeze`.")  # fmt: skip
        return 1 if changed else 0
    text = json.dumps(new, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / "frozen.json").write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
