"""A report as JUnit XML, for systems that show the results of tests. Pure.

One suite for each suite of the kit, one case for each check, named by its rule and its name. What failed is a failure,
what could not be told an error, what does not apply is skipped; a warning passes and says so in its output. A run's
time stands at the first of its checks alone, so that sums are right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from oarbank_conformkit.checks import Check
from oarbank_conformkit.render.characters import escaped
from oarbank_conformkit.report import Report
from oarbank_conformkit.rules import catalogue

_ENDINGS = {"fail": "failure", "unknown": "error", "skip": "skipped"}


def render(report: Report) -> str:
    """Return the document as text that ends in LF."""
    suites: dict[str, list[Check]] = {}
    for one in report.checks:
        suites.setdefault(one.suite, []).append(one)
    name = report.module_id or report.directory
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="{escaped(name)}" {_totals(report.checks)} time="{report.took_s:.3f}">',
    ]
    for suite, checks in suites.items():
        lines += _suite(report, suite, checks)
    return "\n".join([*lines, "</testsuites>", ""])


def _suite(report: Report, suite: str, checks: Sequence[Check]) -> Iterator[str]:
    times = list(_times(checks))
    started = datetime.fromtimestamp(report.started, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    yield f'  <testsuite name="{escaped(suite)}" {_totals(checks)} time="{sum(times):.3f}" timestamp="{started}">'
    yield "    <properties>"
    for key, value in _properties(report).items():
        yield f'      <property name="{key}" value="{escaped(value)}"/>'
    yield "    </properties>"
    seen: dict[str, int] = {}
    for one, time_s in zip(checks, times, strict=True):
        name = f"{one.rule}: {one.name}"
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:  # readers take two cases of one name for one
            name = f"{name} ({seen[name]})"
        yield f'    <testcase classname="conform.{escaped(suite)}" name="{escaped(name)}" time="{time_s:.3f}">'
        yield from _ending(one)
        yield f"      <system-out>{escaped(_output(one))}</system-out>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _ending(one: Check) -> Iterator[str]:
    if one.status not in _ENDINGS:
        return
    tag = _ENDINGS[one.status]
    message = escaped(" ".join(one.detail.split()))
    if tag == "skipped":
        yield f'      <skipped message="{message}"/>'
    else:
        yield f'      <{tag} type="{escaped(one.rule)}" message="{message}">{escaped(one.detail)}</{tag}>'


def _output(one: Check) -> str:
    rule = catalogue()[one.rule]
    lines = [f"{one.status}: {one.detail}" if one.detail else one.status, f"{rule.level}: {rule.says}"]
    if one.evidence:
        lines.append(f"evidence: {json.dumps(dict(one.evidence), ensure_ascii=False, default=repr)}")
    return "\n".join(lines)


def _properties(report: Report) -> Mapping[str, object]:
    return {
        "module": report.module_id or "unknown",
        "version": report.module_version or "unknown",
        "kit": report.kit,
        "platform": report.host.platform,
        "python": report.host.python_version,
        "cpus": report.host.cpus,
    }


def _totals(checks: Iterable[Check]) -> str:
    statuses = [one.status for one in checks]
    failed, unknown, skipped = (statuses.count(status) for status in ("fail", "unknown", "skip"))
    return f'tests="{len(statuses)}" failures="{failed}" errors="{unknown}" skipped="{skipped}"'


def _times(checks: Sequence[Check]) -> Iterator[float]:
    """The time of each check's run at its first check, and 0 at the others: one run's checks stand side by side."""
    last: float | None = None
    for one in checks:
        yield one.took_s if one.took_s is not None and one.took_s != last else 0.0
        last = one.took_s
