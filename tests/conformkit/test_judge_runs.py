"""Doctor and golden judged from what they left."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_agent_check.jobs.module import module
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.goldens import golden
from oarbank_conformkit.judge.doctor import judge_doctor
from oarbank_conformkit.judge.run import compared, crashed, judge_golden, own_words
from oarbank_conformkit.result_schema import ResultSchema, result_schema
from tests.conformkit import bundles

MODULE = module(
    {
        "module": {"id": "org.example.standin", "version": "1.2.3", "compat": "c1"},
        "requires": {"platforms": ["linux-amd64"]},
        "runner": {"exec": ["python", "x.py"]},
        "results": {"digest": {"version": 1, "over": ["texts"]}},
    }
)
GOLDEN = golden("goldens/a.json", json.dumps(bundles.golden({"units": 3})).encode())
RESULT: dict[str, Any] = {"schema": "standin/result@1", "module_version": "1.2.3", "payload": {"texts": ["3 units"]}}
DOCTOR = {"runner_protocol": {"supported": [1]}, "health": "healthy", "attrs": {"platform": "linux-amd64"}}


def ran(result: Any = RESULT, **other: Any) -> RunSeen:
    data = result if result is None or isinstance(result, bytes) else json.dumps(result).encode()
    return replace(RunSeen(exit=0, took_s=0.4, limit_s=60, result=data), **other)


def judged(seen: RunSeen) -> dict[str, Any]:
    checks, _ = judge_golden(MODULE, GOLDEN, seen)  # type: ignore[arg-type]
    return {one.rule: one for one in checks}


def test_right_golden_passes() -> None:
    assert {one.status for one in judged(ran()).values()} == {"pass", "skip"}
    assert judged(ran())["golden.payload"].status == "skip"


def payload(**changes: Any) -> dict[str, Any]:
    return RESULT | {"payload": changes}


GOLDENS = [
    # behaviour, seen, exit, result, digest, part of the sentence
    ("another text", ran(payload(texts=["4 units"])), "pass", "pass", "fail", "must be"),
    ("no such field", ran(payload(tokens=1)), "pass", "pass", "fail", "must hold texts"),
    ("no result", ran(None), "pass", "fail", "unknown", "found no result.json"),
    ("no JSON", ran(b"{"), "pass", "fail", "unknown", "must be JSON"),
    ("another schema", ran(RESULT | {"schema": "standin/result@2"}), "pass", "fail", "unknown", "standin/result@1"),
    ("another version", ran(RESULT | {"module_version": "9.9.9"}), "pass", "fail", "unknown", "must be 1.2.3"),
    ("a file that is not there", ran(missing_files=("out.txt",)), "pass", "fail", "unknown", "out.txt"),
    (
        "another exit",
        ran(exit=4, stderr="a\nboom\n"),
        "fail",
        "pass",
        "pass",
        "found exit 4 after 0.4 s; last lines of stderr:\na\nboom",
    ),
    ("a signal", ran(None, exit=-9, phase=True), "fail", "fail", "unknown", "signal 9"),
    ("no end", ran(None, exit=None), "fail", "fail", "unknown", "still running after 60 s"),
    (
        "its own reason",
        ran(None, exit=3, failure=b'{"reason": "standin/no_model", "detail": "m.gguf"}'),
        "fail",
        "fail",
        "unknown",
        "standin/no_model: m.gguf",
    ),
]


@pytest.mark.parametrize(
    ("behaviour", "seen", "ended", "result", "digest", "words"), GOLDENS, ids=[r[0] for r in GOLDENS]
)
def test_golden(behaviour: str, seen: RunSeen, ended: str, result: str, digest: str, words: str) -> None:
    found = judged(seen)

    wanted = {"golden.exit": ended, "golden.result": result, "golden.digest": digest}
    assert {rule: one.status for rule, one in found.items() if rule in wanted} == wanted
    assert any(words in one.detail for one in found.values())


SCHEMA = result_schema("schemas/r.json", json.dumps(bundles.RESULT_SCHEMA).encode())
REMOTE = result_schema("schemas/r.json", b'{"$ref": "https://example.org/a.json"}')
ENDLESS = result_schema("schemas/r.json", b'{"$ref": "#"}')
PAYLOADS: list[tuple[str, RunSeen, ResultSchema | None, str | None, str]] = [
    # behaviour, seen, schema, status, part of the sentence
    ("keeps it", ran(), SCHEMA, "pass", "schemas/r.json"),
    (
        "a field of another type",
        ran(payload(texts=["3 units"], units="3")),
        SCHEMA,
        "fail",
        "/payload/units: must be a wh",
    ),
    (
        "a field that is not there",
        ran(payload(units=3)),
        SCHEMA,
        "fail",
        "/payload: must have texts; found none, by sch",
    ),
    ("a schema that fetches", ran(), REMOTE, "fail", "schemas/r.json: every $ref must lead to a place in this file"),
    ("a schema without end", ran(), ENDLESS, "fail", "refers to itself"),
    ("no schema", ran(), None, "skip", "names no schema"),
    ("no result", ran(None), SCHEMA, None, ""),
]


@pytest.mark.parametrize(("behaviour", "seen", "schema", "status", "words"), PAYLOADS, ids=[row[0] for row in PAYLOADS])
def test_payload_keeps_the_schema_of_the_results(
    behaviour: str, seen: RunSeen, schema: ResultSchema | None, status: str | None, words: str
) -> None:
    checks, _ = judge_golden(MODULE, GOLDEN, seen, schema)  # type: ignore[arg-type]

    found = [one for one in checks if one.rule == "golden.payload"]
    assert [one.status for one in found] == ([] if status is None else [status])
    assert all(words in one.detail for one in found)


def test_payload_that_breaks_its_schema_says_what_to_edit() -> None:
    checks, _ = judge_golden(MODULE, GOLDEN, ran(payload(texts=["3 units"], units="3")), SCHEMA)  # type: ignore[arg-type]

    [found] = [one for one in checks if one.rule == "golden.payload"]
    assert found.detail == (
        'result.json: /payload/units: must be a whole number; found "3", by schemas/r.json. '
        "Correct the runner, or the schema if the result is right."
    )


CRASHES = [
    ("no start", RunSeen(refused="Permission denied"), "could not be started: Permission denied"),
    ("a crash at import", ran(None, exit=1, stderr="SyntaxError: x\n"), "exit 1 after 0.4 s; last line of stderr: Syn"),
    ("a signal before its first phase", ran(None, exit=-11), "signal 11"),
]


@pytest.mark.parametrize(("behaviour", "seen", "words"), CRASHES, ids=[row[0] for row in CRASHES])
def test_golden_that_never_came_to_work_is_two_lines(behaviour: str, seen: RunSeen, words: str) -> None:
    found = judged(seen)

    assert {rule: one.status for rule, one in found.items()} == {"golden.exit": "fail", "golden.result": "unknown"}
    assert words in found["golden.exit"].detail


SPEAKING = [
    ran(None, exit=1, phase=True),
    ran(exit=1),
    ran(None, exit=1, failure=b"{}"),
    ran(None),
    ran(None, exit=None),
]


@pytest.mark.parametrize("seen", SPEAKING, ids=["a phase", "a result", "a failure", "exit 0", "still running"])
def test_run_that_left_anything_did_not_crash(seen: RunSeen) -> None:
    assert not crashed(seen)


def test_last_words_are_five_lines_at_most() -> None:
    told = own_words(None, "".join(f"line {i}\n\n" for i in range(9)))

    assert told == "; last lines of stderr:\nline 4\nline 5\nline 6\nline 7\nline 8"


def test_place_at_the_end_of_a_long_line_is_kept() -> None:
    place = f'  File "/{"folder/" * 40}runner.py", line 2'

    told = own_words(None, f"{place}\nSyntaxError: x\n")

    assert 'runner.py", line 2\nSyntaxError: x' in told
    assert len(told) < 170


def test_words_that_an_exit_has_told_are_not_told_again_for_the_result() -> None:
    found = judged(ran(None, exit=1, phase=True, stderr="boom\n"))

    assert "boom" in found["golden.exit"].detail
    assert found["golden.result"].detail == "must be there; found no result.json"


def test_wrong_digest_names_the_file_the_result_and_what_to_do() -> None:
    detail = judged(ran(payload(texts=["4 units"])))["golden.digest"].detail

    assert 'of {"texts": ["4 units"]}' in detail
    assert detail.endswith("if it is right, write this digest into goldens/a.json.")


def test_digest_of_another_version_is_not_compared() -> None:
    other = replace(GOLDEN, digest_version=2)  # type: ignore[type-var]

    checks, _ = judge_golden(MODULE, other, ran())  # type: ignore[arg-type]

    assert [one.status for one in checks] == ["pass", "pass", "pass", "skip", "fail"]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(ran(), "pass"), (ran(payload(texts=["3 UNITS"])), "fail"), (ran(exit=1), "fail"), (ran(None), "fail")],
)
def test_later_run_must_give_the_same(seen: RunSeen, expected: str) -> None:
    _, first = judge_golden(MODULE, GOLDEN, ran())  # type: ignore[arg-type]

    assert compared(MODULE, first, seen)[0] == expected


def test_later_run_without_a_first_is_unknown() -> None:
    assert compared(MODULE, None, ran())[0] == "unknown"


def test_result_that_was_seen_in_half_fails_and_says_how_to_write_one() -> None:
    found = judged(ran(torn="17 bytes: must be JSON"))["golden.whole"]

    assert found.status == "fail"
    assert "17 bytes" in found.detail
    assert "rename" in found.detail


def doctor(document: Any = DOCTOR, **other: Any) -> RunSeen:
    text = document if isinstance(document, bytes) else json.dumps(document).encode() + b"\n"
    return replace(RunSeen(exit=0, took_s=0.1, limit_s=120, stdout=text), **other)


def told(**changes: Any) -> RunSeen:
    return doctor(DOCTOR | changes)


RULES = ("doctor.exit", "doctor.document", "doctor.protocol", "doctor.platform", "doctor.health")
DOCTORS = [
    # behaviour, seen, statuses in the order of RULES, part of the sentence
    ("healthy", doctor(), "pass pass pass pass pass", ""),
    ("chatter before", doctor(b"loading...\n" + json.dumps(DOCTOR).encode()), "pass pass pass pass pass", ""),
    ("chatter after", doctor(json.dumps(DOCTOR).encode() + b"\nbye\n"), "pass fail unknown unknown unknown", "bye"),
    ("over several lines", doctor(json.dumps(DOCTOR, indent=1).encode()), "pass fail unknown unknown unknown", "}"),
    ("silence", doctor(b""), "pass fail unknown unknown unknown", "no line at all"),
    ("other protocols", told(runner_protocol={"supported": [2]}), "pass pass fail pass pass", "[2]"),
    ("another platform", told(attrs={"platform": "a-b"}), "pass pass pass fail pass", "must be linux-amd64"),
    ("no platform", told(attrs={}), "pass pass pass skip pass", "need not be"),
    ("unhealthy, no reason", told(health="unhealthy"), "pass pass pass pass fail", "found unhealthy"),
    (
        "unhealthy and why",
        told(health="unhealthy", checks=[{"name": "disk", "ok": False, "detail": "full"}]),
        "pass pass pass pass warn",
        "disk: full",
    ),
    ("a crash", doctor(b"", exit=1, stderr="boom"), "fail unknown", "boom"),
    ("no start", RunSeen(refused="Permission denied"), "fail unknown", "Permission denied"),
    (
        "a last line that is no document",
        doctor(b"{}\n"),
        "pass fail unknown unknown unknown",
        "Print the document last",
    ),
    ("unhealthy exit", doctor(exit=1), "fail pass pass pass pass", "exit 1"),
    ("no end", doctor(exit=None), "fail pass pass pass pass", "still running after 120 s"),
    ("no end and no word", doctor(b"", exit=None), "fail unknown", "it had printed nothing"),
]


@pytest.mark.parametrize(("behaviour", "seen", "statuses", "words"), DOCTORS, ids=[row[0] for row in DOCTORS])
def test_doctor(behaviour: str, seen: RunSeen, statuses: str, words: str) -> None:
    checks = judge_doctor(seen, "linux-amd64")

    assert [one.rule for one in checks] == list(RULES[: len(checks)])
    assert [one.status for one in checks] == statuses.split()
    assert any(words in one.detail for one in checks)
