"""The kit judged by what it catches: the honest runner fails nothing, each wrong one exactly what it breaks.

On a busy machine the kit may be unable to tell; then the check must say with figures that it was busy. What never
happens, busy or not: that a wrong runner passes the rule it breaks, or that anybody fails another.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import psutil
import pytest

from oarbank_conformkit.checks import Check
from oarbank_conformkit.report import Report
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform
from tests.fakegpu import runners


def told(path: Path) -> dict[str, Any]:
    """What a mutant's file says of itself, without running it."""
    assigned = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in assigned}  # type: ignore[union-attr]


MUTANTS = {path: told(path) for path in sorted(bundles.MUTANTS.glob("*.py"))}
ON_CPU = [path for path, words in MUTANTS.items() if "NEEDS" not in words]
ON_GPU = [path for path, words in MUTANTS.items() if words.get("NEEDS") == "gpu"]


def failed(report: Report) -> set[str]:
    return {one.rule for one in report.checks if one.status == "fail"}


def excused(report: Report) -> set[str]:
    """Rules that could not be told because the machine was busy, as the evidence shows."""
    return {one.rule for one in report.checks if one.status == "unknown" and machine_was_busy(one)}


def machine_was_busy(one: Check) -> bool:
    seen = one.evidence or {}
    waited_s, disturbed_s = seen.get("waited_s") or 0.0, seen.get("disturbed_s", 0.0)
    return waited_s > 0.1 or disturbed_s > 0.1 or seen.get("tick_worst_s", 0.0) > 0.02


def running_below(folder: Path) -> list[int]:
    """Processes that run a program from a folder: whatever the kit left behind."""
    listed = [(process.pid, process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, words in listed if words and str(folder) in " ".join(words)]


@pytest.mark.realtime
@pytest.mark.parametrize("path", ON_CPU, ids=lambda path: path.stem)
def test_mutant_fails_what_it_breaks_and_nothing_else(path: Path, conform: Conform, tmp_path: Path) -> None:
    mutant = MUTANTS[path]

    report = conform(path.read_text(), **mutant.get("PLAN", {}))

    assert running_below(tmp_path) == []
    assert failed(report) == mutant["BREAKS"] - excused(report), report.checks
    assert report.exit != 0


@pytest.mark.realtime
@pytest.mark.parametrize("path", ON_GPU, ids=lambda path: path.stem)
def test_mutant_on_a_gpu_fails_what_it_breaks_and_nothing_else(
    path: Path, conform_gpu: Conform, tmp_path: Path
) -> None:
    mutant = MUTANTS[path]

    report = conform_gpu(path.read_text(), **mutant.get("PLAN", {}))

    assert running_below(tmp_path) == []
    assert failed(report) == mutant["BREAKS"] - excused(report), report.checks
    assert report.exit != 0


@pytest.mark.realtime
def test_honest_gpu_runner_passes_every_line(conform_gpu: Conform) -> None:
    report = conform_gpu(runners.HONEST)

    others = {one.rule for one in report.checks if one.status != "pass"}
    assert others <= excused(report), report.checks
    [held] = [one for one in report.checks if one.rule == "duty.measured_share"]
    assert held.evidence is not None
    assert held.evidence["device"] == "gpu"
    assert held.evidence["source"] == "fake-gpu"
    assert 0.05 < held.evidence["held"] < 0.35


@pytest.mark.realtime
def test_honest_runner_passes_every_line(conform: Conform) -> None:
    report = conform(bundles.runner())

    others = {one.rule for one in report.checks if one.status != "pass"}
    assert others <= excused(report), report.checks


def test_mutants_are_there_and_say_what_they_break() -> None:
    assert len(ON_CPU) >= 14
    assert len(ON_GPU) >= 3
    assert {*ON_CPU, *ON_GPU} == {*MUTANTS}
    assert all(words["BREAKS"] for words in MUTANTS.values())
