"""What people read when a schema refuses a document: one sentence, one place, the alternative that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from oarbank_sdk.contracts.faults import found, nearest
from oarbank_sdk.contracts.judge import judge_value
from oarbank_sdk.contracts.schema_faults import schema_faults

DUTY_SPEC = {"name": "d", "duty": 0.3, "payload": {}}
SPEC = {"schema": "m/spec@1", "module_id": "a.b", "module_version": "1.0.0", "job_key": "k", "payload": {}}


def duty(**fields: Any) -> dict[str, Any]:
    return {"duty_specs": [{**DUTY_SPEC, **fields}]}


SENTENCES = [
    # kind                document                                 line
    ("runner-control-1", 7, "must be an object; found 7"),
    ("runner-control-1", [], "must be an object; found a list"),
    ("runner-control-1", {"seq": {}}, "/seq: must be a whole number; found an object"),
    ("runner-control-1", {}, "must have seq; found none"),
    ("runner-control-1", {"seq": 1, "threads": 0}, "/threads: must be at least 1; found 0"),
    ("runner-control-1", {"seq": 1, "threads": "2"}, '/threads: must be a whole number or null; found "2"'),
    ("conformance-1", duty(duty=30), "/duty_specs/0/duty: must be from 0 to 1; found 30"),
    ("conformance-1", duty(name=""), '/duty_specs/0/name: must have at least 1 character(s); found ""'),
    ("conformance-1", duty(name="n" * 81), "/duty_specs/0/name: must have at most 80 characters; found 81"),
    ("conformance-1", duty(name="n" * 20 + "m" * 61), "/duty_specs/0/name: must have at most 80 characters; found 81"),
    ("conformance-1", duty(x=3), '/duty_specs/0/x: must be a known key; found "x"'),
    (
        "conformance-1",
        duty(windw_s=3),
        '/duty_specs/0/windw_s: must be a known key; found "windw_s"; did you mean window_s?',
    ),
    ("conformance-1", {"params": {}}, "/params: must be a list; found an object"),
    (
        "conformance-1",
        {"service_specs": [{"name": "s", "service": "m", "path": "/", "body": "x"}]},
        '/service_specs/0/body: must be an object, a list or null; found "x"',
    ),
    ("spec-envelope-1", {**SPEC, "timeout_s": 0}, "/timeout_s: must be above 0; found 0"),
    ("spec-envelope-1", {**SPEC, "protocol": 2}, "/protocol: must be 1; found 2"),
    (
        "spec-envelope-1",
        {**SPEC, "module_version": "1.0"},
        '/module_version: must be a semantic version with all three parts; found "1.0"',
    ),
    # Alternatives: the one that was meant, or all of their types.
    ("spec-envelope-1", {**SPEC, "resume": []}, "/resume: must be an object or null; found a list"),
    ("spec-envelope-1", {**SPEC, "resume": {"from_attempt": 1}}, "/resume: must have digest; found none"),
    ("spec-envelope-1", {**SPEC, "stage": 5}, "/stage: must be text or null; found 5"),
    (
        "gpu-duty-event-1",
        {"t": 1, "kind": "log", "name": "gpu_duty", "value": 0, "data": {"duty": 0, "device": "gpu"}},
        '/kind: must be "metric"; found "log"',
    ),
    (
        "runner-doctor-1",
        {"runner_protocol": {"supported": [1]}, "health": "ok"},
        '/health: must be one of "healthy", "unhealthy", "undetected"; found "ok"',
    ),
    (
        "runner-doctor-1",
        {"runner_protocol": {"supported": []}, "health": "healthy"},
        "/runner_protocol/supported: must have at least 1 item(s); found []",
    ),
]


@pytest.mark.parametrize(("kind", "document", "line"), SENTENCES, ids=[line[:60] for _, _, line in SENTENCES])
def test_sentence(kind: str, document: Any, line: str) -> None:
    assert [fault.line("") for fault in schema_faults(kind, document)] == [line]


def test_two_bounds_of_an_open_range_are_both_told() -> None:
    stage = {"name": "a", "timeout_s": 0}
    manifest = {
        "manifest": 1,
        "module": {"id": "org.example.toy", "version": "0.1.0", "compat": "toy1"},
        "requires": {"platforms": ["linux-amd64"]},
        "runner": {"exec": ["python"], "env": {"omp": ""}},
        "results": {},
        "stages": [stage],
    }

    assert [fault.line("x.toml") for fault in schema_faults("module-manifest-1", manifest)] == [
        'x.toml: /runner/env/omp: must be a variable\'s name in capitals; found "omp"',
        "x.toml: /stages/0/timeout_s: must be above 0 and at most 86400; found 0",
    ]


@pytest.mark.parametrize(
    ("number", "accepted"),
    [(2**53, True), (float(2**53), True), (float(2**53 + 2), False), (2**53 + 2, True), (1.0, True), (True, False)],
)
def test_whole_number_is_one_that_is_known_exactly(number: Any, accepted: bool) -> None:
    assert (judge_value("runner-control-1", {"seq": number}) == []) is accepted


def test_long_value_is_cut_in_a_sentence() -> None:
    (fault,) = schema_faults("runner-control-1", {"seq": "9" * 500})

    assert fault.message == 'must be a whole number; found "' + "9" * 76 + "..."


def test_found_value_has_at_most_eighty_characters() -> None:
    assert found("x" * 78) == '"' + "x" * 78 + '"'
    assert found("x" * 79) == '"' + "x" * 76 + "..."


def test_nearest_key_is_the_nearest_and_only_a_near_one() -> None:
    assert nearest("windows_s", ["payload", "window", "window_s"]) == "; did you mean window_s?"
    assert nearest("colour", ["payload", "window_s"]) == ""
