"""A report as one page: the verdict, a picture of each duty spec, every check with its rule and its evidence. Pure.

One file that asks for nothing from outside and runs no program. What went wrong stands first. All text that came from
elsewhere goes through `escaped`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from oarbank_conformkit.checks import Check, Status
from oarbank_conformkit.judge.duty import measured, used_reports
from oarbank_conformkit.render import style
from oarbank_conformkit.render import timeline as picture
from oarbank_conformkit.render.characters import escaped
from oarbank_conformkit.render.text import MARKS, WORDS, verdict
from oarbank_conformkit.report import DutyRun, Report, counts
from oarbank_conformkit.rules import catalogue
from oarbank_conformkit.timeline import timeline

_OPEN: frozenset[Status] = frozenset({"fail", "unknown"})
_TITLES: Mapping[str, str] = {"manifest": "The module's files", "runner": "The runner"}
_MARKS: Mapping[Status, str] = {**MARKS, "unknown": "unknown"}

MOST_LISTED = 40
"""So many numbers of one list are shown; the JSON report holds them all."""


def render(report: Report) -> str:
    """Return the whole page as text that ends in LF."""
    name = report.module_id or report.directory
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>Conformance of {escaped(name)}</title>",
            f"<style>{style.COLOURS}{style.PICTURE}{style.PAGE}</style>",
            "</head>",
            "<body>",
            "<main>",
            *_head(report, name),
            *_wrong(report),
            *_duties(report),
            *_checks(report),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _head(report: Report, name: str) -> Iterator[str]:
    kind = {True: "pass", False: "fail", None: "unknown"}[report.ok]
    numbers = counts(report.checks)
    listed = ", ".join(f"{numbers[status]} {WORDS[status]}" for status in MARKS)
    started = datetime.fromtimestamp(report.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    version = f" {report.module_version}" if report.module_version else ""
    host = f"{report.host.platform}, {report.host.cpus} processors, Python {report.host.python_version}"
    yield f"<h1>Conformance of {escaped(name)}{escaped(version)}</h1>"
    yield f'<div class="verdict {kind}">'
    yield f"<p><strong>{escaped(verdict(report))}</strong></p>"
    yield f"<p>{listed} in {report.took_s:.1f} s</p>"
    yield "</div>"
    yield f'<p class="quiet">{escaped(report.directory)}, judged {started} by conformkit {escaped(report.kit)}'
    yield f"on {escaped(host)}</p>"


def _wrong(report: Report) -> Iterator[str]:
    """Links to what failed and what could not be told."""
    wrong = [(place, one) for place, one in enumerate(report.checks) if one.status in _OPEN]
    if not wrong:
        return
    yield "<h2>What went wrong</h2>"
    yield "<ul>"
    for place, one in wrong:
        yield f'<li>{_mark(one)}<a href="#check-{place}">{escaped(one.name)}</a> <code>{escaped(one.rule)}</code></li>'
    yield "</ul>"


# ---- duty specs ---------------------------------------------------------------------------------------


def _duties(report: Report) -> Iterator[str]:
    for place, run in enumerate(report.duty_runs):
        yield f"<h2>Duty spec {escaped(run.spec.name)}</h2>"
        found = timeline(run)
        if found is None:
            yield "<p>It never came to its duty: see the checks.</p>"
            continue
        yield f"<figure>{picture.svg(found, f'duty-{place}')}</figure>"
        if any(not one.judged for one in found.told):
            yield '<p class="quiet">Dashed reports are not of the duty of the window, or began before its nudge.</p>'
        if len(found.told) > picture.MOST_TOLD:
            yield f'<p class="quiet">The first {picture.MOST_TOLD} of {len(found.told)} reports are drawn.</p>'
        yield from _pairs(_figures(run))
        yield "<details><summary>Moments, in seconds from the nudge</summary>"
        yield from _pairs({f"{moment.at_s:.3f} s": moment.says for moment in found.moments})
        yield "</details>"


def _figures(run: DutyRun) -> Mapping[str, str]:
    used = used_reports(run.seen)
    longest = [report.longest_unit_s for report in used if report.longest_unit_s is not None]
    rows = {"asked": f"{run.spec.duty:g} for {run.spec.window_s:g} s"}
    rows["reported"] = _listed([f"{report.share:.3f}" for report in used]) or "nothing that can be judged"
    if longest:
        rows["longest unit"] = f"{max(longest) * 1000:.1f} ms"
    for one in measured(run.seen, used):
        if one.unknown is not None or one.shares is None:
            rows[f"measured, {one.device}"] = f"unknown: {one.unknown or 'nothing was measured'}"
            continue
        worst = "" if one.shares.worst is None else f"; at most {one.shares.worst.held:.3f} in 2 s"
        source = one.source if one.clock is None else f"{one.source}, {one.clock}"
        rows[f"measured, {one.device}"] = f"{one.shares.mean.held:.3f}{worst} ({source})"
    return rows


# ---- checks -------------------------------------------------------------------------------------------


def _checks(report: Report) -> Iterator[str]:
    suites = dict.fromkeys(one.suite for one in report.checks)
    for suite in suites:
        yield f"<h2>{escaped(_TITLES.get(suite, suite))}</h2>"
        yield "<ul>"
        for place, one in enumerate(report.checks):
            if one.suite == suite:
                yield from _check(place, one)
        yield "</ul>"


def _check(place: int, one: Check) -> Iterator[str]:
    rule = catalogue()[one.rule]
    yield f'<li class="check {one.status}" id="check-{place}">'
    yield f"<h3>{_mark(one)}{escaped(one.name)}</h3>"
    if one.detail:
        yield f'<p class="said">{escaped(one.detail)}</p>'
    says = f"{escaped(rule.says)} Source: {escaped(rule.source)}."
    yield f'<p class="quiet"><code>{escaped(one.rule)}</code> {rule.level}: {says}</p>'
    evidence = {key: _value(value) for key, value in (one.evidence or {}).items()}
    if one.took_s is not None:
        evidence["its run took"] = f"{one.took_s:.1f} s"
    if evidence:
        yield f"<details{' open' if one.status in _OPEN else ''}><summary>Evidence</summary>"
        yield from _pairs(evidence)
        yield "</details>"
    yield "</li>"


def _mark(one: Check) -> str:
    return f'<span class="mark {one.status}">{_MARKS[one.status]}</span>'


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        return _listed([_value(each) for each in value])
    return json.dumps(value, ensure_ascii=False, default=repr)


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - MOST_LISTED} more" if len(values) > MOST_LISTED else ""
    return ", ".join(values[:MOST_LISTED]) + more


def _pairs(rows: Mapping[str, str]) -> Iterator[str]:
    yield "<dl>"
    for key, value in rows.items():
        yield f"<dt>{escaped(key)}</dt><dd>{escaped(value)}</dd>"
    yield "</dl>"
