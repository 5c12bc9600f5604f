"""Look for documents that a schema and its generated model judge differently.

Documents come from three places: the examples, a pool that hypothesis-jsonschema draws, and a seeded damager that makes
many cheap variants of both (another type, another spelling of a number, null, a missing or unknown key, a repeated
item, a trailing newline). All pass the strict reader first, as every document does; what it refuses never reaches a
judge. A disagreement is shrunk, so that what a failing test prints is small.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis_jsonschema import from_schema
from pydantic import ValidationError
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from oarbank_sdk import contracts, strictjson
from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.schema_faults import validator

Path = tuple[str | int, ...]

# Values at which the two judges' languages differ, or nearly do.
NASTY: list[Any] = [
    None, True, False, 0, 1, -1, 2, 300, 0.0, -0.0, 1.0, 5.0, 0.5, -0.5, 1e300, 5e-324, 2**53 + 1, 2**63, 10**400,
    "", "0.3", "1", "true", "null", "a", "a\n", "A", "\u0663", "\u00e9", "x" * 70, "x" * 700, "\ud800", "metric",
    [], [1], ["a", "a"], [1, 1.0], [None], [{}], {}, {"a": 1}, {"a": "b"}, {"A": "b"}, {"a\n": "b"}, {"name": "a"},
    "1.0.0", "a.b", "gpu", "ab" * 32, "llmserve/spec@1", "linux-amd64", "2026-01-01", "llmserve/x", "pass",
]  # fmt: skip
EXTRA_KEYS = ["x", "schema", "schema_", "class", "model_config", "model_extra", "self", "__class__", "kind", "a b", ""]
GENERATOR_SKIPS = frozenset({"$schema", "$id", "$defs", "description", "title", "default"})


@dataclass
class Judges:
    """The schema and the model of one contract."""

    kind: str

    def __post_init__(self) -> None:
        self.validator = validator(self.kind)
        self.model = getattr(contracts, catalogue.schema(self.kind)["title"])

    def differ(self, document: Any) -> str | None:
        """Say how the judges differ about a document as the strict reader returned it, or None."""
        accepted = self.validator.is_valid(document)
        for mode, validate, document_or_text in (
            ("python", self.model.model_validate, document),
            ("json", self.model.model_validate_json, json.dumps(document)),
        ):
            refusal = _refusal(validate, document_or_text)
            if accepted != (refusal is None):
                return f"{mode}: schema {'accepts' if accepted else 'refuses'}, model {refusal or 'accepts'}"
        return None


def _refusal(validate: Any, document: Any) -> str | None:
    try:
        validate(document)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        return f"refuses {first['loc']}: {first['type']}"
    return None


def disagreements(kind: str, documents: Iterable[Any]) -> tuple[int, list[tuple[str, Any]]]:
    """Return how many documents reached the judges, and (how they differ, shrunk document) for each difference."""
    judges = Judges(kind)
    judged, found = 0, []
    for raw in documents:
        try:
            document = strictjson.loads(json.dumps(raw))
        except strictjson.StrictJSONError:
            continue
        judged += 1
        if (how := judges.differ(document)) is not None:
            found.append((how, shrink(judges, document, how)))
    return judged, found


def shrink(judges: Judges, document: Any, how: str) -> Any:
    """Drop every part whose removal leaves the same difference."""
    changed = True
    while changed:
        changed = False
        for path in sorted(places(document), key=len):
            if path:
                trial = copy.deepcopy(document)
                del at(trial, path[:-1])[path[-1]]
                if judges.differ(trial) == how:
                    document, changed = trial, True
                    break
    return document


# ---- documents ---------------------------------------------------------------------------------------


def draw_pool(kind: str, count: int, start: int) -> list[Any]:
    """Return `count` valid documents drawn from a schema; the same for the same `start`. About 25 a second."""
    pool: list[Any] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(from_schema(bundled(kind)))
    def collect(document: Any) -> None:
        pool.append(document)

    collect()
    return pool


def bundled(kind: str) -> Any:
    """Return a schema without references, as the generator needs it: it reads draft 7 and follows no file."""
    documents = catalogue.documents()
    registry = Registry().with_resources((doc["$id"], DRAFT202012.create_resource(doc)) for doc in documents)
    return _inline(catalogue.schema(kind), registry, catalogue.address(kind))


def _inline(node: Any, registry: Any, base: str) -> Any:
    if isinstance(node, list):
        return [_inline(one, registry, base) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        found = registry.resolver(base).lookup(node["$ref"])
        return _inline(found.contents, registry, found.resolver._base_uri)
    out = {}
    for key, value in node.items():
        if key in ("properties", "patternProperties"):
            out[key] = {name: _inline(one, registry, base) for name, one in value.items()}
        elif key in ("const", "enum", "required"):
            out[key] = value
        elif key not in GENERATOR_SKIPS:
            out[key] = _inline(value, registry, base)
    return out


def damaged(pool: list[Any], count: int, start: int) -> Iterator[Any]:
    """Yield `count` variants of the pool's documents with one to three injuries each; the same for the same `start`."""
    rng = random.Random(start)
    for _ in range(count):
        document = copy.deepcopy(rng.choice(pool))
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            document = _injure(rng, document)
        yield document


def _injure(rng: random.Random, document: Any) -> Any:
    path = rng.choice(list(places(document)))
    here = at(document, path)
    act = rng.choice(["replace", "replace", "respell", "respell", "delete", "add", "repeat", "null"])
    if act == "add" and isinstance(here, dict):
        here[rng.choice(EXTRA_KEYS)] = copy.deepcopy(rng.choice(NASTY))
    elif act == "repeat" and isinstance(here, list) and here:
        here.append(copy.deepcopy(rng.choice(here)))
    elif not path:
        return copy.deepcopy(rng.choice(NASTY)) if act == "replace" and rng.random() < 0.05 else document
    elif act == "delete":
        del at(document, path[:-1])[path[-1]]
    else:
        new = {"null": None, "respell": _respelled(rng, here)}.get(act, copy.deepcopy(rng.choice(NASTY)))
        at(document, path[:-1])[path[-1]] = new
    return document


def _respelled(rng: random.Random, here: Any) -> Any:
    if isinstance(here, bool):
        return rng.choice([int(here), float(here), str(here).lower()])
    if isinstance(here, int) and abs(here) < 2**53:
        return rng.choice([float(here), str(here), bool(here)])
    if isinstance(here, float) and math.isfinite(here):
        return rng.choice([str(here), int(here), bool(here)])
    if isinstance(here, str):
        return rng.choice([here + "\n", here.upper(), [here], here[:-1], here + here])
    return str(here)


def places(document: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value in a document, the document itself first."""
    yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from places(value, (*path, key))
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from places(value, (*path, i))


def at(document: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document
