"""The kit judged by what it catches: the honest runner fails nothing, each wrong one exactly what it breaks.

On a busy machine the kit may be unable to tell; then the check must say with figures that it was busy. What never
happens, busy or not: that a wrong runner passes the rule it breaks, or that anybody fails another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from oarbank_conformkit.report import Report
from oarbank_conformkit.rules import catalogue
from tests import needs
from tests.conformkit import bundles, mutant_table
from tests.conformkit.conftest import Conform
from tests.conformkit.mutant_table import ASKED_OF_COORDINATORS, Mutant, Row, machine_was_busy
from tests.fakegpu import runners

__all__ = ["DO_NOT_APPLY", "excused", "failed"]

MUTANTS = list(mutant_table.mutants().values())

Judged = Callable[[Mutant], Row]


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest) -> Iterator[Judged]:
    """All chosen mutants on their way, several at once; each test waits for its own."""
    if sys.platform == "win32":
        pytest.skip(f"needs Linux or macOS: {needs.RUNNERS}")
    params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    asked = [one["mutant"] for one in params if isinstance(one.get("mutant"), Mutant)]
    with mutant_table.pending(asked) as rows:
        yield lambda mutant: rows[mutant.name].result()


def failed(report: Report) -> set[str]:
    return {one.rule for one in report.checks if one.status == "fail"}


def excused(report: Report) -> set[str]:
    """Rules that could not be told because the machine was busy, as the evidence shows."""
    return {one.rule for one in report.checks if one.status == "unknown" and machine_was_busy(one)}


@pytest.mark.realtime
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_fails_what_it_breaks_and_nothing_else(mutant: Mutant, judged: Judged) -> None:
    assert judged(mutant).wrong(mutant) == ""


@pytest.mark.realtime
def test_honest_coordinator_passes_every_line(conform: Conform) -> None:
    source = (bundles.HERE / "coordinator_stand_in.py").read_text()

    report = conform(bundles.runner(), only=["protocol"], coordinator=source, fixtures=ASKED_OF_COORDINATORS)

    assert {one.status for one in report.checks} == {"pass"}, report.checks


LONG = {"units": 200, "unit_s": 0.01}
"""A golden that works for two seconds: a pause comes before its end on a busy machine too."""

DO_NOT_APPLY = {"protocol.starts", "throttle.threads"}
"""Rules that a runner without a coordinator, and one that works on one processor anyway, are not judged by."""


@pytest.mark.realtime
def test_honest_gpu_runner_passes_every_line(conform_gpu: Conform) -> None:
    report = conform_gpu(runners.HONEST, golden=LONG)

    others = {one.rule for one in report.checks if one.status != "pass"}
    assert others <= DO_NOT_APPLY | excused(report), report.checks
    [held] = [one for one in report.checks if one.rule == "duty.measured_share"]
    assert held.evidence is not None
    assert held.evidence["device"] == "gpu"
    assert held.evidence["source"] == "fake-gpu"
    assert 0.05 < held.evidence["held"] < 0.35


@pytest.mark.realtime
def test_honest_runner_passes_every_line(conform: Conform) -> None:
    report = conform(bundles.runner(), golden=LONG)

    others = {one.rule for one in report.checks if one.status != "pass"}
    assert others <= DO_NOT_APPLY | excused(report), report.checks


def test_mutants_are_there_and_say_what_they_break() -> None:
    assert sum(not (one.gpu or one.coordinator) for one in MUTANTS) >= 50
    assert sum(one.gpu for one in MUTANTS) >= 4
    assert sum(one.coordinator for one in MUTANTS) >= 13
    assert all(one.expected or one.advised for one in MUTANTS)
    levels = {rule.id: rule.level for rule in catalogue().values()}
    assert {levels[rule] for one in MUTANTS for rule in one.warns} == {"should"}
    assert {levels[rule] for one in MUTANTS for rule in one.breaks} == {"must"}


VERDICTS = [
    # what, failed, unknown, excused, exit, wrong, could not be told
    ("fails exactly its rules", {"a", "b"}, set(), set(), 1, "", set()),
    ("fails another one too", {"a", "b", "c"}, set(), set(), 1, "fails c too", set()),
    ("passes one", {"a"}, set(), set(), 1, "does not fail b", set()),
    ("cannot be told, and nothing excuses it", {"a"}, {"b"}, set(), 1, "does not fail b", set()),
    ("cannot be told on a busy machine", {"a"}, {"b"}, {"b"}, 1, "", {"b"}),
    ("is green", set(), set(), set(), 0, "does not fail a, b; is green", set()),
]


@pytest.mark.parametrize(
    ("what", "failed", "unknown", "excused", "code", "wrong", "untold"), VERDICTS, ids=[what for what, *_ in VERDICTS]
)
def test_mutant_is_judged_by_its_exact_set(
    what: str, failed: set[str], unknown: set[str], excused: set[str], code: int, wrong: str, untold: set[str]
) -> None:
    mutant = Mutant("m", "", frozenset({"a", "b"}))
    row = Row(frozenset(failed), frozenset(unknown), frozenset(excused), code)

    assert (row.wrong(mutant), row.untold(mutant)) == (wrong, untold)


ADVICE = [
    # what, failed, warned, exit, wrong
    ("is warned of exactly its rules", set(), {"a"}, 0, ""),
    ("is warned of another one too", set(), {"a", "b"}, 0, "is warned of b too"),
    ("is not warned", set(), set(), 0, "is not warned of a"),
    ("fails", {"b"}, {"a"}, 1, "fails b too"),
    ("is refused for advice", set(), {"a"}, 1, "is refused"),
]


@pytest.mark.parametrize(("what", "failed", "warned", "code", "wrong"), ADVICE, ids=[what for what, *_ in ADVICE])
def test_mutant_that_ignores_advice_is_warned_and_stays_green(
    what: str, failed: set[str], warned: set[str], code: int, wrong: str
) -> None:
    row = Row(frozenset(failed), frozenset(), frozenset(), code, warned=frozenset(warned))

    assert row.wrong(Mutant("m", "", warns=frozenset({"a"}))) == wrong


def test_honest_runner_may_leave_nothing_open_but_for_a_busy_machine() -> None:
    right = Mutant("m", "")

    assert Row(frozenset(), frozenset({"a"}), frozenset(), 3).wrong(right) == "leaves a open"
    assert Row(frozenset(), frozenset({"a"}), frozenset({"a"}), 3).wrong(right) == ""
    assert Row(frozenset({"a"}), frozenset(), frozenset(), 1).wrong(right) == "fails a too"
    assert Row(frozenset(), frozenset(), frozenset(), 0, left=2).wrong(right) == "leaves 2 processes behind"
