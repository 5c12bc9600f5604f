"""The schemas themselves: named, described, listed, and the same inside the package."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from oarbank_sdk import contracts
from oarbank_sdk.contracts import catalogue
from tests.contracts.examples import SCHEMAS

KINDS = catalogue.kinds()
FILES = sorted(path.name for path in SCHEMAS.glob("*.schema.json"))
TITLES = {
    "runner-control-1": "RunnerControl",
    "runner-event-1": "RunnerEvent",
    "gpu-duty-event-1": "GpuDutyEvent",
    "conformance-1": "Conformance",
    "conformance-report-1": "ConformanceReport",
    "runner-failure-1": "RunnerFailure",
    "runner-doctor-1": "RunnerDoctor",
    "spec-envelope-1": "SpecEnvelope",
    "result-envelope-1": "ResultEnvelope",
    "module-manifest-1": "ModuleManifest",
    "gpu-sample-1": "GpuSample",
    "agent-journal-1": "AgentJournal",
    "guard-config-1": "GuardConfig",
    "guard-line-1": "GuardLine",
    "level-certificate-1": "LevelCertificate",
}
# What models do not enforce, or judge differently.
AVOIDED = {"format", "not", "contains", "if", "then", "else", "dependentRequired", "oneOf", "multipleOf", "prefixItems"}


def document(name: str) -> Any:
    return json.loads((SCHEMAS / name).read_text("utf-8"))


def subschemas(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every schema inside a document, with its place."""
    yield path, node
    for key in ("properties", "$defs"):
        for name, child in node.get(key, {}).items():
            yield from subschemas(child, f"{path}/{key}/{name}")
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(node.get(key), dict):
            yield from subschemas(node[key], f"{path}/{key}")
    for i, child in enumerate(node.get("anyOf", [])):
        yield from subschemas(child, f"{path}/anyOf/{i}")


def test_every_contract_is_in_the_catalogue() -> None:
    assert sorted(TITLES) == KINDS
    assert {f"{kind}.schema.json" for kind in KINDS} == set(FILES) - {"common.schema.json", "index.schema.json"}


@pytest.mark.parametrize("kind", KINDS)
def test_title_names_a_model_that_the_package_hands_out(kind: str) -> None:
    assert catalogue.schema(kind)["title"] == TITLES[kind]
    assert getattr(contracts, TITLES[kind]).__doc__ == catalogue.schema(kind)["description"]
    assert TITLES[kind] in contracts.__all__


@pytest.mark.parametrize("name", FILES)
def test_schema_is_a_schema_and_its_id_matches_its_name(name: str) -> None:
    schema = document(name)

    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"https://schemas.oarbank.dev/{name}"
    assert schema["description"].endswith(".")


@pytest.mark.parametrize("name", FILES)
def test_every_property_has_a_description(name: str) -> None:
    for path, schema in subschemas(document(name)):
        for key, child in schema.get("properties", {}).items():
            assert child.get("description", "").endswith("."), f"{path}/{key}"


@pytest.mark.parametrize("name", FILES)
def test_every_number_says_its_unit_or_its_bounds(name: str) -> None:
    """A bound that is written must also be told to the reader of the description."""
    for path, schema in subschemas(document(name)):
        told = schema.get("description", "")
        for bound in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if told and bound in schema:
                assert re.search(rf"\b{schema[bound]}\b", told), f"{path}: {bound} {schema[bound]} is not in {told!r}"


@pytest.mark.parametrize("name", FILES)
def test_schema_uses_only_what_models_hold_to(name: str) -> None:
    for path, schema in subschemas(document(name)):
        assert not AVOIDED & set(schema), path
        pattern = schema.get("pattern", "^$")
        assert pattern.startswith("^"), path
        assert pattern.endswith("$"), path
        assert not re.search(r"\\[dws]|\(\?", pattern), path
        if "const" in schema:
            assert isinstance(schema["const"], str), path


@pytest.mark.parametrize("name", FILES)
def test_optional_property_has_a_default_that_it_accepts(name: str) -> None:
    for path, schema in subschemas(document(name)):
        for key, child in schema.get("properties", {}).items():
            optional = key not in schema.get("required", [])
            assert ("default" in child) is optional, f"{path}/{key}"


@pytest.mark.parametrize("name", FILES)
def test_objects_say_whether_unknown_keys_are_kept(name: str) -> None:
    closed = set()
    for path, schema in subschemas(document(name)):
        if schema.get("type") == "object":
            assert "additionalProperties" in schema, path
            if schema["additionalProperties"] is False:
                closed.add(schema["title"])

    wanted = {
        "conformance-1.schema.json": {"RunnerSpec", "RunnerExpect", "ServiceSpec", "ServiceExpect", "DutySpec"},
        "guard-config-1.schema.json": {"GuardConfig", "GuardProtect", "GuardProgress", "GuardJob", "GuardWorkload"},
    }
    assert closed == wanted.get(name, set())


def test_titles_are_unique_because_all_models_share_one_module() -> None:
    titles = [schema["title"] for name in FILES for _, schema in subschemas(document(name)) if "title" in schema]

    assert len(titles) == len(set(titles))


def test_index_names_every_contract_once() -> None:
    assert [one["$ref"] for one in document("index.schema.json")["anyOf"]] == [f"{kind}.schema.json" for kind in KINDS]


def test_package_data_equals_the_schemas_of_the_checkout() -> None:
    packaged = files("oarbank_sdk") / "schemas"

    for name in FILES:
        assert (packaged / name).read_bytes() == (SCHEMAS / name).read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_readme_has_a_row_with_the_major_of_the_name(kind: str) -> None:
    row = next(
        line for line in (SCHEMAS / "README.md").read_text("utf-8").splitlines() if line.startswith(f"| `{kind}` |")
    )
    cells = [cell.strip() for cell in row.strip("|").split("|")]

    assert cells[1] == f"`{TITLES[kind]}`"
    assert cells[2]
    assert cells[3]
    assert cells[4] == kind.rpartition("-")[2]
    assert cells[5] in ("draft", "frozen")


def test_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(catalogue.UnknownKind, match=r"must be one of agent-journal-1, .*; found 'runner-control'"):
        catalogue.schema("runner-control")


def test_schema_handed_out_may_be_changed_without_harm() -> None:
    catalogue.schema("runner-control-1")["properties"].clear()

    assert catalogue.schema("runner-control-1")["properties"]


CODE_WITHOUT_EXTRA = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pydantic", "jsonschema", "referencing", "typing_extensions"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from oarbank_sdk.contracts import catalogue, faults, rules
print(len(catalogue.kinds()))
for statement in ("from oarbank_sdk.contracts import RunnerControl", "import oarbank_sdk.contracts.judge"):
    try:
        exec(statement)
    except ModuleNotFoundError as exc:
        print(exc)
"""


def test_without_the_extra_the_catalogue_works_and_the_rest_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", CODE_WITHOUT_EXTRA], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == [
        str(len(KINDS)),
        "oarbank_sdk.contracts: needs pydantic. Install it: pip install 'oarbank-sdk[contracts]'",
        "oarbank_sdk.contracts: needs jsonschema. Install it: pip install 'oarbank-sdk[contracts]'",
    ]
