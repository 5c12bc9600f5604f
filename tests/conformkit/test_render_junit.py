"""JUnit XML: what a system that shows test results reads out of it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from oarbank_conformkit.checks import check
from oarbank_conformkit.render import junit
from oarbank_conformkit.report import Report
from tests.conformkit.reports import MARKUP, every_kind, hostile, of, one

KINDS = every_kind()
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def parsed(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(junit.render(report).encode("utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_is_well_formed_and_counts_what_it_holds(kind: str) -> None:
    root = parsed(KINDS[kind])

    for level in (root, *root.findall("testsuite")):
        assert int(level.get("tests", "")) == len(level.findall(".//testcase"))
        for attribute, tag in COUNTED.items():
            assert int(level.get(attribute, "")) == len(level.findall(f".//testcase/{tag}"))
    assert len(root.findall(".//testcase")) == len(KINDS[kind].checks)
    names = [case.get("name") for case in root.findall(".//testcase")]
    assert len(set(names)) == len(names)


WHOLE = """\
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="org.example.standin" tests="1" failures="1" errors="0" skipped="0" time="4.250">
  <testsuite name="runner" tests="1" failures="1" errors="0" skipped="0" time="1.500" timestamp="1970-01-01T00:16:40">
    <properties>
      <property name="module" value="org.example.standin"/>
      <property name="version" value="1.2.3"/>
      <property name="kit" value="0.1.0"/>
      <property name="platform" value="linux-amd64"/>
      <property name="python" value="3.11.7"/>
      <property name="cpus" value="2"/>
    </properties>
    <testcase classname="conform.runner" name="golden.exit: exits 0" time="1.500">
      <failure type="golden.exit" message="found &lt;4&gt; and a line">found &lt;4&gt;
and a line</failure>
      <system-out>fail: found &lt;4&gt;
and a line
must: A golden&#x27;s run exits 0 within its stage&#x27;s time.
evidence: {&quot;exit&quot;: 4}</system-out>
    </testcase>
  </testsuite>
</testsuites>
"""


def test_the_whole_document() -> None:
    told = check("runner", "golden.exit", "exits 0", "fail", "found <4>\nand a line", {"exit": 4})

    assert junit.render(of(replace(told, took_s=1.5))) == WHOLE


ENDINGS = [
    ("pass", None),
    ("warn", None),
    ("fail", "failure"),
    ("unknown", "error"),
    ("skip", "skipped"),
]


@pytest.mark.parametrize(("status", "tag"), ENDINGS)
def test_a_check_ends_as_its_status_says(status: str, tag: str | None) -> None:
    (case,) = parsed(of(one(status))).findall(".//testcase")  # type: ignore[arg-type]

    assert case.get("name") == f"duty.reports: a {status} check"
    assert [child.tag for child in case if child.tag != "system-out"] == ([] if tag is None else [tag])
    if tag is not None:
        assert case[0].get("message") == f"why it is {status}"
    assert f"{status}: why it is {status}" in (case.findtext("system-out") or "")


def test_output_holds_the_rule_s_sentence_and_the_evidence() -> None:
    told = check("runner", "duty.burst", "x", "fail", "held at most 0.9", {"held": 0.9, "limit": 0.45})

    output = parsed(of(told)).findtext(".//system-out") or ""

    assert "must: No two seconds of the kit's own measure" in output
    assert 'evidence: {"held": 0.9, "limit": 0.45}' in output


def test_the_time_of_a_run_is_counted_once() -> None:
    checks = [one("pass", took_s=2.5), one("pass", "duty.runs", took_s=2.5), one("pass", "duty.stop", took_s=1.0)]

    (suite,) = parsed(of(*checks)).findall("testsuite")

    assert [case.get("time") for case in suite.findall("testcase")] == ["2.500", "0.000", "1.000"]
    assert suite.get("time") == "3.500"


def test_each_suite_of_the_kit_is_one_suite() -> None:
    found = of(check("manifest", "manifest.valid", "a", "pass", ""), one("pass"))

    assert [suite.get("name") for suite in parsed(found).findall("testsuite")] == ["manifest", "runner"]


def test_two_checks_of_one_name_stay_two() -> None:
    names = [case.get("name") for case in parsed(of(one("pass"), one("pass"))).findall(".//testcase")]

    assert names == ["duty.reports: a pass check", "duty.reports: a pass check (2)"]


def test_what_others_wrote_is_text_and_no_markup() -> None:
    text = junit.render(hostile())

    assert MARKUP not in text
    assert MARKUP in "".join(parsed(hostile()).itertext())
    assert "\x1b" not in text
    assert "\N{SYMBOL FOR ESCAPE}[31m" in text


def test_a_module_without_an_id_is_named_by_its_folder() -> None:
    assert parsed(replace(of(one("pass")), module_id=None)).get("name") == "modules/standin"
