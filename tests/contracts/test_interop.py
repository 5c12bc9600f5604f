"""The shared interop documents: every one gets the verdict, and the layer that decides it, which its index states.

What a control reader does with a document (`reader`, `control-seq`) is tested where Control is; here a document is only
judged.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oarbank_sdk import canonical, contracts, events
from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.judge import judge
from oarbank_sdk.contracts.schema_faults import schema_faults

ROOT = Path(__file__).parent / "interop"
INDEX: list[dict[str, Any]] = json.loads((ROOT / "INDEX.json").read_text("utf-8"))["documents"]
KINDS = {
    "control": "runner-control-1",
    "event": "runner-event-1",
    "failure": "runner-failure-1",
    "doctor": "runner-doctor-1",
    "conformance": "conformance-1",
    "spec-envelope": "spec-envelope-1",
    "result-envelope": "result-envelope-1",
}
ELSEWHERE = {"control-seq"}  # with Control
JUDGED = [entry for entry in INDEX if entry["kind"] in KINDS]


def rows(kind: str) -> list[Any]:
    return [pytest.param(entry, id=entry["file"]) for entry in INDEX if entry["kind"] == kind]


def every(entries: list[dict[str, Any]]) -> list[Any]:
    return [pytest.param(entry, id=entry["file"]) for entry in entries]


def data(entry: dict[str, Any]) -> bytes:
    return (ROOT / entry["file"]).read_bytes()


@pytest.mark.parametrize("entry", every(JUDGED))
def test_document_gets_its_verdict_and_layer(entry: dict[str, Any]) -> None:
    # The index judges with the last of repeated keys; the policy of a kind is a subject of its own, below.
    verdict = judge(KINDS[entry["kind"]], data(entry), duplicates="last")

    assert ("valid" if verdict.valid else "invalid", verdict.layer) == (entry["verdict"], entry["layer"])
    assert bool(verdict.faults) is not verdict.valid


@pytest.mark.parametrize("entry", every([entry for entry in JUDGED if entry["layer"] in ("schema", "semantics")]))
def test_schema_alone_says_what_the_index_says_of_it(entry: dict[str, Any]) -> None:
    verdict = judge(KINDS[entry["kind"]], data(entry), duplicates="last")

    assert ("invalid" if schema_faults(verdict.kind, verdict.value) else "valid") == entry["json_schema"]


@pytest.mark.parametrize("entry", every([entry for entry in JUDGED if entry["verdict"] == "valid"]))
def test_valid_document_survives_its_model_unchanged(entry: dict[str, Any]) -> None:
    kind = KINDS[entry["kind"]]
    value = judge(kind, data(entry), duplicates="last").value

    kept = getattr(contracts, catalogue.schema(kind)["title"]).model_validate(value).to_value()

    assert kept == value
    for dotted in entry.get("preserved", []):
        here = kept
        for step in dotted.split("."):
            here = here[step]  # a KeyError names the field that was lost


def test_key_given_twice_is_valid_by_schema_and_refused_in_what_a_person_writes() -> None:
    twice = (ROOT / "conformance" / "dup-keys.json").read_bytes()
    by_schema, by_policy = judge("conformance-1", twice, duplicates="last"), judge("conformance-1", twice)

    # The index's verdict: bytes and schema accept it with the last key, and the reader only flags it.
    assert (by_schema.valid, by_schema.layer) == (True, "schema")
    assert [warning.keyword for warning in by_schema.warnings] == ["duplicate-key"]
    # Ours by default: an author who wrote duty_specs twice would otherwise never learn that one list is ignored.
    assert (by_policy.valid, by_policy.layer) == (False, "json")
    assert [(fault.pointer, fault.keyword) for fault in by_policy.faults] == [("", "duplicate-key")]


def test_key_given_twice_in_a_control_document_is_flagged_and_the_last_one_wins() -> None:
    verdict = judge("runner-control-1", (ROOT / "control" / "dup-keys.json").read_bytes())

    assert verdict.valid
    assert verdict.value == {"seq": 2, "gpu_duty": 0.2}
    assert [warning.keyword for warning in verdict.warnings] == ["duplicate-key"]


def test_mistyped_key_at_the_top_of_a_fixture_file_is_warned_about() -> None:
    verdict = judge("conformance-1", (ROOT / "conformance" / "unknown-top.json").read_bytes())

    assert verdict.valid
    assert [(warning.pointer, warning.keyword) for warning in verdict.warnings] == [("/duty_spec", "unknown-key")]
    assert "did you mean duty_specs?" in verdict.warnings[0].message


# ---- gpu_duty events ---------------------------------------------------------------------------------

BY_SCHEMA = {"valid": True, "invalid": False, "n/a": False}
TOLERATED = "valid by the tolerant reader, invalid by the proposed schema"


@pytest.mark.parametrize("entry", rows("event"))
def test_duty_schema_takes_exactly_the_reports(entry: dict[str, Any]) -> None:
    expected = BY_SCHEMA.get(entry["gpu_duty"], False)
    assert entry["gpu_duty"] in (*BY_SCHEMA, TOLERATED)

    assert judge("gpu-duty-event-1", data(entry)).valid is expected


@pytest.mark.parametrize("entry", rows("event"))
def test_tolerant_reader_takes_reports_and_says_why_not(entry: dict[str, Any]) -> None:
    objects = events.events([data(entry).rstrip(b"\n")])
    if entry["layer"] == "json":
        assert objects == []  # a bad line like any other: no report, and no exception
        return
    (event,) = objects
    if entry["gpu_duty"] == "n/a":
        assert events.duty_report(event) is None
    elif entry["gpu_duty"] == "invalid":
        with pytest.raises(events.ReportError, match="value must be a number from 0 to 1; found True"):
            events.duty_report(event)
    else:
        report = events.duty_report(event)
        assert report is not None
        assert report.share == event["value"]


@pytest.mark.parametrize("entry", rows("events-file"))
def test_events_file_holds_as_many_reports_as_the_index_counts(entry: dict[str, Any]) -> None:
    lines, rest = events.complete_lines(data(entry))
    reports = [report for event in events.events(lines) if (report := events.duty_report(event))]

    assert len(reports) == entry["gpu_duty_reports"]
    assert (rest != b"") is (entry["file"] == "events-file/complete-but-no-newline.ndjson")


# ---- doctor, job keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", rows("doctor-stdout"))
def test_last_line_of_a_doctor_is_its_answer(entry: dict[str, Any]) -> None:
    verdict = judge("runner-doctor-1", events.doctor_line(data(entry)))

    assert verdict.valid is (entry["verdict"] == "valid")


VECTORS = json.loads((ROOT / "job-key" / "vectors.json").read_text("utf-8"))
REFUSED = {
    "integer beyond 2^53": {"n": 9007199254740993},
    "no canonical form": {"n": float("nan")},
    "object keys are strings": {1: 2},
}


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["job_key"][:8])
def test_job_key_vector(case: dict[str, Any]) -> None:
    whole = {"compat": case["compat"], "inputs": case["key_inputs"], "module": case["module_id"]}
    key = canonical.job_key(case["module_id"], case["compat"], case["key_inputs"], case["stage"])

    assert canonical.dumps(whole).decode("utf-8") == case["canonical"]
    assert key == case["job_key"]


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["why"])
def test_key_inputs_without_a_canonical_form_are_refused(case: dict[str, Any]) -> None:
    with pytest.raises(canonical.CanonicalError):
        canonical.job_key("org.example.llmserve", "llmserve1", REFUSED[case["why"]])


# ---- the index itself --------------------------------------------------------------------------------


def test_every_document_of_the_index_is_tested_and_none_is_left_over() -> None:
    tested = {*KINDS, "events-file", "doctor-stdout", "job-key", *ELSEWHERE}
    files = {str(path.relative_to(ROOT).as_posix()) for path in ROOT.glob("*/*")}

    assert {entry["kind"] for entry in INDEX} == tested
    assert {entry["file"] for entry in INDEX} == files
