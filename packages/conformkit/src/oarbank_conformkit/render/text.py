"""A report for people: one line for each check, its reason below where there is something to say, and a summary. Pure.

A line is a mark of four characters, the suite padded to nine, and the name, with a blank between them. Below it,
indented, stands the detail of every check that did not simply pass, and of every check of a duty or a stop, because
there the numbers are the point.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from oarbank_conformkit.checks import Check, Status
from oarbank_conformkit.render.characters import visible
from oarbank_conformkit.report import Report, counts

MARKS: Mapping[Status, str] = {"pass": "pass", "fail": "FAIL", "unknown": "????", "skip": "skip", "warn": "warn"}

SUITE_WIDTH = 9

DETAIL_WIDTH = 100
"""Characters of a line of detail, its indent included."""

_INDENT = " " * (4 + 1 + SUITE_WIDTH + 1)
WORDS: Mapping[Status, str] = {
    "pass": "passed",
    "fail": "failed",
    "unknown": "unknown",
    "skip": "skipped",
    "warn": "warnings",
}
_COLOURS: Mapping[Status, str] = {"pass": "32", "fail": "1;31", "unknown": "1;33", "skip": "2", "warn": "33"}


def check_lines(one: Check, *, colour: bool = False) -> str:
    """Return a check's line and, below it, its detail; ends in LF."""
    mark = MARKS[one.status]
    if colour:
        mark = f"\x1b[{_COLOURS[one.status]}m{mark}\x1b[0m"
    lines = [f"{mark} {one.suite:<{SUITE_WIDTH}} {' '.join(visible(one.name).split())}"]
    if one.detail and (one.status != "pass" or one.rule.startswith(("duty.", "stop.acknowledged"))):
        for line in visible(one.detail).splitlines():
            lines += textwrap.wrap(
                line, DETAIL_WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False
            )
    return "\n".join(lines) + "\n"


def summary(report: Report) -> str:
    """Return the last lines: the counts, the time, and what they come to; ends in LF."""
    numbers = counts(report.checks)
    listed = ", ".join(f"{numbers[status]} {WORDS[status]}" for status in MARKS)
    listed = listed.removesuffix("s") if numbers["warn"] == 1 else listed
    return f"\n{listed} in {report.took_s:.1f} s: {verdict(report)}\n"


def render(report: Report, *, colour: bool = False) -> str:
    """Return the whole report."""
    return "".join(check_lines(one, colour=colour) for one in report.checks) + summary(report)


def verdict(report: Report) -> str:
    """Return what the checks come to, in words, and no more than was judged."""
    who = visible(f"{report.module_id} {report.module_version}" if report.module_id else report.directory)
    if report.ok is None:
        return f"could not tell whether {who} conforms"
    if not report.ok:
        return f"{who} does not conform"
    if report.only:
        return f"{who}: the chosen rules hold; the others were not judged"
    if not report.runner:
        return f"{who}: the files keep their contracts; the runner was not judged"
    if report.throttles and not report.duty_runs:
        return f"{who} conforms; no duty was measured"
    early = {one.name.partition(":")[0] for one in report.checks if (one.evidence or {}).get("ended_early")}
    listed = f"; not judged in full, because the task ended: {', '.join(sorted(early))}" if early else ""
    return f"{who} conforms{visible(listed)}"
