"""What callers may use is written down; a name that goes, or is called in another way, is seen by whoever reviews."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tests.contracts.examples import ROOT
from tools import public_names


def listed(package: str) -> list[str]:
    return (public_names.FOLDER / f"{package}.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("package", public_names.PUBLIC)
def test_every_public_name_is_still_there(package: str) -> None:
    gone = sorted(set(listed(package)) - set(public_names.names(package)))

    assert gone == [], "callers break: that needs a line in CHANGELOG.md and `hatch run names`"


@pytest.mark.parametrize("package", [name for name in public_names.PUBLIC if name != "oarbank_conformkit"])
def test_every_public_name_is_listed(package: str) -> None:
    """Rules of the kit are added often and never go: they may be listed at a release."""
    new = sorted(set(public_names.names(package)) - set(listed(package)))

    assert new == [], "public from now on: `hatch run names`"


def test_lists_hold_what_the_guides_show() -> None:
    sdk = {line.partition("(")[0] for line in listed("oarbank_sdk")}

    assert {"oarbank_sdk.control.Control", "oarbank_sdk.duty.Duty.unit", "oarbank_sdk.supervisor.Supervisor.run"} <= sdk
    assert {"scripts oarbank-sdk", "oarbank_sdk.commands new"} <= sdk
    assert "pytest11 oarbank_conformkit.pytest_plugin" in listed("oarbank_conformkit")
    assert len([line for line in listed("oarbank_conformkit") if line.startswith("rule ")]) > 40


def test_typed_caller_is_checked_and_what_it_expects_to_be_refused_must_be() -> None:
    checker = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pyrefly"]

    assert "tests/contracts/typed_caller.py" in checker["project-includes"]
    assert checker["errors"]["unused-ignore"] == "error"
    assert "step hatch check types" in (ROOT / ".ci/run").read_text("utf-8")


def test_typed_caller_imports_public_names_alone() -> None:
    tree = ast.parse((ROOT / "tests/contracts/typed_caller.py").read_text("utf-8"))
    taken = {
        f"{node.module}.{alias.name}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names if node.module.startswith("oarbank_")
    }  # fmt: skip
    public = {line.partition("(")[0] for package in public_names.PUBLIC for line in listed(package)}

    assert taken
    assert taken - public == set()
