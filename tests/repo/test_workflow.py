"""CI for others: the systems and Pythons that are promised, through scripts that exist, and the form for readings."""

from __future__ import annotations

import re
import tomllib

from tests.repo.test_commands_on_pages import scripts
from tests.repo.test_house import ROOT
from tools.dist_check import PYTHONS
from tools.never_run import WHERES

WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
FORM = (ROOT / ".github/ISSUE_TEMPLATE/gpu-reading.yml").read_text("utf-8")
WHOLE = (ROOT / ".ci/run").read_text("utf-8")


def job(name: str) -> str:
    """The text of one job."""
    return re.split(r"^  \w+:\n", WORKFLOW.partition(f"\n  {name}:\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_tests_run_on_every_system_and_every_python() -> None:
    [systems] = re.findall(r"^ +os: \[(.*)\]$", job("tests"), re.MULTILINE)
    [pythons] = re.findall(r"^ +python: \[(.*)\]$", job("tests"), re.MULTILINE)
    matrix = tomllib.loads((ROOT / "hatch.toml").read_text("utf-8"))["envs"]["hatch-test"]["matrix"]

    assert systems == "ubuntu-latest, macos-latest, windows-latest"
    assert tuple(re.findall(r"3\.\d+", pythons)) == PYTHONS == tuple(reversed(matrix[0]["python"]))


def test_conformance_is_judged_where_runners_can_be_started() -> None:
    assert "os: [ubuntu-latest, macos-latest]" in job("conform")
    assert "hatch run conform" in job("conform")


def test_linux_runs_what_anybody_can_run() -> None:
    assert "- run: .ci/run\n" in job("whole")
    assert "hatch run dist:check" in job("distributions")
    assert "continue-on-error" not in WORKFLOW


def test_every_script_of_ci_exists() -> None:
    named = re.findall(r"hatch run ([a-z][a-z:]*)", WORKFLOW + WHOLE)

    assert len(named) >= 6
    assert set(named) <= scripts()
    for generated in ("gen:check", "docs:check"):
        assert f"step hatch run {generated}" in WHOLE


def test_form_asks_for_every_row_that_nobody_closed() -> None:
    options = re.findall(r"^        - (.*)$", FORM.partition("options:")[2].partition("validations:")[0], re.MULTILINE)

    assert options[:-1] == list(WHERES)
    for command in ("sources", "record --pid PID --out reading", "recording reading/* --pid PID --json"):
        assert f"oarbank-agent-check {command}" in FORM
