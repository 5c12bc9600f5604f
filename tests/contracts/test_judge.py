"""The chain as a whole: which layer speaks, repeated keys, values from elsewhere, and that nothing breaks it."""

from __future__ import annotations

import json
import math
import tomllib
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.faults import Fault, found, pointer
from oarbank_sdk.contracts.judge import PERSON_WRITTEN, judge, judge_value

KINDS = catalogue.kinds()
TWICE = b'{"duty_specs": [], "duty_specs": [{"name": "d", "duty": 30, "payload": {}}]}'

LAYERS = [
    # a document that breaks several layers is refused by the first        kind                  layer    keyword
    ("bytes before JSON", b"\xef\xbb\xbf{", "runner-control-1", "bytes", "bom"),
    ("JSON before schema", b'{"seq": "7",}', "runner-control-1", "json", "json"),
    ("a repeated key before schema", TWICE, "conformance-1", "json", "duplicate-key"),
    ("half a character before schema", b'{"seq": "7", "reason": "\\ud800"}', "runner-control-1", "json", "surrogate"),
    ("schema before rules", b'{"seq": "7", "checkpoint": true}', "runner-control-1", "schema", "type"),
    ("rules last", b'{"seq": 7, "checkpoint": true}', "runner-control-1", "semantics", "checkpoint-needs-stop"),
]


@pytest.mark.parametrize(
    ("data", "kind", "layer", "keyword"), [row[1:] for row in LAYERS], ids=[row[0] for row in LAYERS]
)
def test_first_layer_that_refuses_decides(data: bytes, kind: str, layer: str, keyword: str) -> None:
    verdict = judge(kind, data)

    assert not verdict.valid
    assert verdict.layer == layer
    assert [fault.keyword for fault in verdict.faults] == [keyword]


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_key_is_refused_only_in_what_a_person_writes(kind: str) -> None:
    keywords = [fault.keyword for fault in judge(kind, b'{"x": 1, "x": 2}').faults]

    assert (keywords == ["duplicate-key"]) is (kind in PERSON_WRITTEN)


def test_policy_on_repeated_keys_can_be_chosen() -> None:
    control = b'{"seq": 1, "seq": 2}'

    assert judge("runner-control-1", control).valid
    assert judge("runner-control-1", control, duplicates="refuse").layer == "json"
    assert judge("conformance-1", TWICE, duplicates="last").faults[0].pointer == "/duty_specs/0/duty"


def test_repeated_key_is_still_told_when_a_later_layer_refuses() -> None:
    verdict = judge("runner-control-1", b'{"seq": 1, "seq": null}')

    assert [fault.keyword for fault in verdict.faults] == ["type"]
    assert [warning.keyword for warning in verdict.warnings] == ["duplicate-key"]


def test_number_out_of_range_is_told_once_by_the_schema_where_it_speaks() -> None:
    verdict = judge("runner-control-1", b'{"seq": 1, "gpu_duty": 1e400, "x": [1e400]}')

    assert [(fault.pointer, fault.keyword) for fault in verdict.faults] == [
        ("/gpu_duty", "maximum"),
        ("/x/0", "number-range"),
    ]
    assert verdict.layer == "schema"


def test_every_fault_of_a_layer_is_told() -> None:
    verdict = judge("runner-control-1", b'{"stop": 1, "pause": null, "threads": 0}')

    assert {(fault.pointer, fault.keyword) for fault in verdict.faults} == {
        ("", "required"),
        ("/stop", "type"),
        ("/pause", "type"),
        ("/threads", "minimum"),
    }


def test_two_missing_keys_are_two_faults() -> None:
    faults = judge("conformance-1", b'{"duty_specs": [{"name": "d"}]}').faults

    assert [fault.message for fault in faults] == ["must have duty; found none", "must have payload; found none"]


def test_value_that_was_refused_is_still_handed_out() -> None:
    assert judge("runner-control-1", b'{"seq": null}').value == {"seq": None}
    assert judge("runner-control-1", b'{"seq": nul}').value is None


def test_unknown_capability_of_a_runner_is_a_warning() -> None:
    manifest = {
        "manifest": 1,
        "module": {"id": "org.example.toy", "version": "0.1.0", "compat": "toy1"},
        "requires": {"platforms": ["linux-amd64"]},
        "runner": {"exec": ["python"], "capabilities": ["cancellable", "cooperative_throttel"]},
        "results": {},
    }
    verdict = judge("module-manifest-1", json.dumps(manifest))

    assert verdict.valid
    assert [(warning.pointer, warning.keyword) for warning in verdict.warnings] == [
        ("/runner/capabilities/1", "unknown-capability")
    ]
    assert verdict.warnings[0].message.endswith("did you mean cooperative_throttle?")


MANIFEST = """
manifest = 1
module = { id = "org.example.toy", version = "0.1.0", compat = "toy1" }
requires = { platforms = ["linux-amd64"] }
runner = { exec = ["python", "-I", "{bundle}/toy.py"], stop_grace_s = 5.0 }
results = {}
"""


def test_manifest_from_toml_is_judged_as_a_value() -> None:
    assert judge_value("module-manifest-1", tomllib.loads(MANIFEST)) == []


@pytest.mark.parametrize(
    ("line", "at", "keyword"),
    [
        ("stages = [{ name = 'a', timeout_s = nan }]", "/stages/0/timeout_s", "number-range"),
        ("stages = [{ name = 'a', timeout_s = inf }]", "/stages/0/timeout_s", "maximum"),
        ("released = 2026-01-01", "/released", "json-value"),
        ("tools = [{ since = 2026-01-01T00:00:00Z }]", "/tools/0/since", "json-value"),
        ("stages = [{ name = 2026-01-01 }]", "/stages/0/name", "type"),
    ],
)
def test_what_toml_has_and_json_has_not_is_refused(line: str, at: str, keyword: str) -> None:
    faults = judge_value("module-manifest-1", tomllib.loads(MANIFEST + line))

    assert [(fault.pointer, fault.keyword) for fault in faults] == [(at, keyword)]


def test_python_values_that_are_no_json_are_refused() -> None:
    value = {"seq": 1, "x": {1: 2}, "y": math.nan, "z": [date(2026, 1, 1)]}

    assert {(fault.pointer, fault.keyword) for fault in judge_value("runner-control-1", value)} == {
        ("/x", "json-value"),
        ("/y", "number-range"),
        ("/z/0", "json-value"),
    }


def test_value_nested_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    faults = judge_value("runner-control-1", {"seq": 1, "x": endless})

    assert [(fault.pointer, fault.keyword) for fault in faults] == [("/x", "depth")]


def test_unknown_kind_is_the_callers_mistake() -> None:
    with pytest.raises(catalogue.UnknownKind):
        judge("runner-control", b"{}")
    with pytest.raises(catalogue.UnknownKind):
        judge_value("common", {})


TOKENS = st.sampled_from(
    [
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"seq"',
        b'"t"',
        b'"kind"',
        b'"data"',
        b"1",
        b"-0.0",
        b"1e999",
        b'"\\ud800"',
        b"nul",
    ]
)


@given(st.sampled_from(KINDS), st.binary(max_size=24) | st.lists(TOKENS, max_size=14).map(b"".join))
def test_any_bytes_get_a_verdict(kind: str, data: bytes) -> None:
    verdict = judge(kind, data)

    assert verdict.valid is (verdict.faults == [])


@given(
    st.sampled_from(KINDS),
    st.recursive(st.none() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)),
)
def test_any_value_gets_an_answer(kind: str, value: Any) -> None:
    assert all(fault.message for fault in judge_value(kind, value))


def test_pointer_is_escaped_as_rfc_6901_says() -> None:
    assert pointer(()) == ""
    assert pointer(("a/b", "m~n", 0, "")) == "/a~1b/m~0n/0/"


def test_found_value_is_cut() -> None:
    assert found("x" * 100) == '"' + "x" * 76 + "..."
    assert found(None) == "null"
    assert found({1}) == "{1}"


def test_line_for_people_names_the_file_and_the_place() -> None:
    fault = Fault("/a", "type", "must be text; found 1")

    assert fault.line("x.json") == "x.json: /a: must be text; found 1"
    assert Fault("", "json", "must be JSON; found NaN").line("x.json") == "x.json: must be JSON; found NaN"
