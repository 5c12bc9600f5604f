"""The verdict over all checks, and the report for people and for machines."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_conformkit.checks import ENDED_EARLY, Check, Status, check, said_once
from oarbank_conformkit.render import json as json_report
from oarbank_conformkit.render import text
from oarbank_conformkit.report import DutyRun, document, strictly
from oarbank_sdk.contracts.judge import judge
from tests.conformkit.reports import of, one
from tests.conformkit.seen import SPEC, duty, judged, report

VERDICTS: list[tuple[str, list[Check], bool | None, int]] = [
    ("all pass", [one("pass")], True, 0),
    ("warnings and skips change nothing", [one("pass"), one("warn", "duty.units"), one("skip")], True, 0),
    ("a failure", [one("pass"), one("fail")], False, 1),
    ("could not tell", [one("pass"), one("unknown")], None, 3),
    ("a failure wins over what could not be told", [one("unknown"), one("fail")], False, 1),
    ("advice that could not be told", [one("unknown", "duty.units")], True, 0),
]


@pytest.mark.parametrize(("why", "checks", "ok", "exit_"), VERDICTS, ids=[row[0] for row in VERDICTS])
def test_verdict_follows_from_the_checks(why: str, checks: list[Check], ok: bool | None, exit_: int) -> None:
    found = of(*checks)

    assert (found.ok, found.exit) == (ok, exit_)


def test_strict_turns_what_could_not_be_told_into_a_failure() -> None:
    found = strictly(one("unknown"))

    assert found.status == "fail"
    assert "--strict" in found.detail
    assert "why it is unknown" in found.detail
    assert of(found).exit == 1


@pytest.mark.parametrize("status", ["pass", "fail", "skip", "warn"])
def test_strict_leaves_the_rest_alone(status: Status) -> None:
    assert strictly(one(status)) == one(status)


def test_document_keeps_its_contract() -> None:
    runs = (DutyRun(SPEC, duty()), DutyRun(SPEC, duty(reports=(report(device="gpu"),), cpu=None)))
    found = of(*judged(duty()).values(), one("unknown"), one("fail"), duty_runs=runs)

    verdict = judge("conformance-report-1", json_report.render(found))

    assert verdict.faults == []


def test_document_holds_both_sides_of_a_duty() -> None:
    (held,) = document(of(one("pass"), duty_runs=(DutyRun(SPEC, duty()),)))["duty_specs"]

    assert (held["duty"], held["limit"]) == (0.3, 0.4)
    assert [found["share"] for found in held["reports"]] == [0.3, 0.3]
    assert held["measured"]["share"] == pytest.approx(0.3)
    assert held["measured"]["worst_2s"] == pytest.approx(0.3)


def test_document_says_why_there_is_no_measure() -> None:
    seen = duty(reports=(report(device="gpu"),))

    (held,) = document(of(one("pass"), duty_runs=(DutyRun(SPEC, seen),)))["duty_specs"]

    assert held["measured"]["share"] is None
    assert "no GPU source" in held["measured"]["reason"]


def test_document_says_what_was_chosen() -> None:
    assert "only" not in document(of(one("pass")))
    assert document(replace(of(one("pass")), only=("golden",)))["only"] == ["golden"]


def test_control_characters_never_reach_a_terminal() -> None:
    shown = text.check_lines(check("runner", "duty.runs", "a\nname\x1b[2J", "fail", "one\x07\ntwo\u202e"))

    assert shown.splitlines() == [
        "FAIL runner    a name\N{SYMBOL FOR ESCAPE}[2J",
        "               one\N{SYMBOL FOR BELL}",
        "               two\N{REPLACEMENT CHARACTER}",
    ]


def test_long_detail_is_cut() -> None:
    assert len(check("runner", "duty.runs", "x", "fail", "a" * 1000).detail) == 600


def test_document_is_one_object_of_finite_numbers() -> None:
    found = json.loads(json_report.render(of(one("pass"))))

    assert found["report"] == "conformance-report-1"
    assert found["counts"] == {"pass": 1, "fail": 0, "unknown": 0, "skip": 0, "warn": 0}


TEXT = """\
pass manifest  oarbank-module.toml keeps its contract
FAIL runner    golden selftest: exits 0
               must exit 0; found exit 4 after 0.4 s; last line of stderr: something that went wrong
               and took a whole line to say so
???? runner    golden selftest: exits within 20 s of a stop
               could not be told
skip runner    doctor: names the platform it was told
               attrs.platform is not given, and need not be
warn manifest  conformance.json holds known keys
               /duty_spec: must be a known key
pass runner    duty spec held: reported share within 0.4
               reported at most 0.300; at most 0.4 is allowed

2 passed, 1 failed, 1 unknown, 1 skipped, 1 warning in 4.2 s: org.example.standin 1.2.3 does not conform
"""


ENDS = [
    (
        "judged in full",
        {"throttles": True, "duty_runs": (DutyRun(SPEC, duty()),)},
        one("pass"),
        "standin 1.2.3 conforms",
    ),
    ("no duty to hold", {}, one("pass"), "standin 1.2.3 conforms"),
    ("no duty measured", {"throttles": True}, one("pass"), "standin 1.2.3 conforms; no duty was measured"),
    (
        "a task that ended before all was judged",
        {"throttles": True, "duty_runs": (DutyRun(SPEC, duty()),)},
        replace(one("skip"), name="duty spec at-0.3: stops", evidence=ENDED_EARLY),
        "standin 1.2.3 conforms; not judged in full, because the task ended: duty spec at-0.3",
    ),
    (
        "files alone",
        {"throttles": True, "runner": False},
        one("pass"),
        "standin 1.2.3: the files keep their contracts; the runner was not judged",
    ),
    (
        "some rules alone",
        {"only": ("golden",)},
        one("pass"),
        "standin 1.2.3: the chosen rules hold; the others were not judged",
    ),
    ("files alone, and wrong", {"runner": False}, one("fail"), "standin 1.2.3 does not conform"),
]


@pytest.mark.parametrize(("why", "changes", "seen", "end"), ENDS, ids=[row[0] for row in ENDS])
def test_summary_claims_what_was_judged_and_no_more(why: str, changes: dict[str, Any], seen: Check, end: str) -> None:
    assert text.summary(replace(of(seen), **changes)).endswith(f"{end}\n")


def test_last_words_are_shown_line_by_line_and_once() -> None:
    shown: set[str] = set()
    first, again, other = (
        said_once(
            check("runner", "golden.exit", "x", "fail", f"found exit {code}; last lines of stderr:\n{words}"), shown
        )
        for code, words in ((1, '  File "r.py", line 3\nSyntaxError: x'),) * 2 + ((2, "a\nb"),)
    )

    assert text.check_lines(first).splitlines()[2:] == [
        '                 File "r.py", line 3',
        "               SyntaxError: x",
    ]
    assert again.detail == "found exit 1; its stderr ends as above"
    assert other.detail.endswith("a\nb")


def test_text_for_people() -> None:
    failure = (
        "must exit 0; found exit 4 after 0.4 s; last line of stderr: something that went wrong and took a whole line "
        "to say so"
    )
    found = of(
        check("manifest", "manifest.valid", "oarbank-module.toml keeps its contract", "pass", "not shown"),
        check("runner", "golden.exit", "golden selftest: exits 0", "fail", failure),
        check("runner", "stop.exit", "golden selftest: exits within 20 s of a stop", "unknown", "could not be told"),
        check(
            "runner",
            "doctor.platform",
            "doctor: names the platform it was told",
            "skip",
            "attrs.platform is not given, and need not be",
        ),
        check(
            "manifest",
            "fixture.known_keys",
            "conformance.json holds known keys",
            "warn",
            "/duty_spec: must be a known key",
        ),
        judged(duty())["duty.reported_share"],
    )

    assert text.render(found) == TEXT


def test_summary_counts_what_is_not_there() -> None:
    assert "1 passed, 0 failed, 0 unknown, 0 skipped, 0 warnings in 4.2 s" in text.summary(of(one("pass")))
    assert text.summary(of(one("pass"))).endswith("org.example.standin 1.2.3 conforms\n")
    assert text.summary(of(one("unknown"))).endswith("could not tell whether org.example.standin 1.2.3 conforms\n")
    assert text.summary(replace(of(one("fail")), module_id=None)).endswith("modules/standin does not conform\n")


def test_colour_is_only_on_the_mark() -> None:
    coloured = text.check_lines(one("fail"), colour=True)

    assert coloured.startswith("\x1b[1;31mFAIL\x1b[0m runner ")
    assert coloured.count("\x1b") == 2
