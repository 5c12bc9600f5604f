"""Files that decide: each that says it is pure is listed, and none reaches the world by another door than an import."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.repo.test_house import PURE, ROOT, WORLD, imported, own_code

PACKAGES = ROOT / "packages"
CODE = {path: ast.parse(path.read_text("utf-8")) for path in own_code() if path.is_relative_to(PACKAGES)}
# Beyond what test_house refuses: other roads to a file, a process, a clock or chance.
ALSO_WORLD = {"concurrent", "fcntl", "getpass", "glob", "http", "importlib", "io", "logging", "mmap", "platform",
              "queue", "random", "resource", "secrets", "urllib", "uuid"}  # fmt: skip
CALLS = {"open", "print", "input", "exec", "eval", "__import__", "compile"}
CLOCKS = {"now", "utcnow", "today"}
# Pure functions behind the one public face that a module's author has.
PURE_FUNCTIONS = {"oarbank_sdk.module": {"digest", "field", "job_key"}}


def listed() -> list[Path]:
    places = [PACKAGES / place for place in PURE]
    return [path for place in places for path in ([place] if place.suffix else sorted(place.rglob("*.py")))]


def name_of(path: Path) -> str:
    """The dotted name of a module in packages/*/src."""
    return ".".join(path.relative_to(PACKAGES).parts[2:])[: -len(".py")].removesuffix(".__init__")


def shown(path: Path) -> str:
    return path.relative_to(PACKAGES).as_posix()


WORLDLY = {name_of(path) for path in CODE if imported(path) & WORLD}


def test_every_file_that_says_it_is_pure_is_listed() -> None:
    says = [path for path, tree in CODE.items() if re.search(r"\bPure\b", ast.get_docstring(tree) or "")]

    assert len(says) > 50
    assert sorted(shown(path) for path in set(says) - set(listed())) == [], "add them to PURE in test_house.py"


def doors(tree: ast.Module) -> list[str]:
    """Calls that reach the world without an import, each with its line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in CALLS or (isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS):
                found.append(f"line {node.lineno}: {called}")
    return found


@pytest.mark.parametrize("path", listed(), ids=shown)
def test_pure_file_reaches_the_world_by_no_other_door(path: Path) -> None:
    assert imported(path) & ALSO_WORLD == set()
    assert doors(CODE[path]) == []


def test_doors_are_found() -> None:
    assert doors(ast.parse("open(p)\nx.open()\ndatetime.now(UTC)\nprint\nprint()")) == [
        "line 1: open", "line 3: datetime.now", "line 5: print",
    ]  # fmt: skip


@pytest.mark.parametrize("path", listed(), ids=shown)
def test_pure_file_takes_only_types_and_constants_from_a_file_that_touches_the_world(path: Path) -> None:
    for node in ast.walk(CODE[path]):
        if isinstance(node, ast.ImportFrom) and node.module in WORLDLY:
            taken = {alias.name for alias in node.names} - PURE_FUNCTIONS.get(node.module, set())
            assert [name for name in taken if not name[0].isupper()] == [], f"line {node.lineno}: from {node.module}"
        if isinstance(node, ast.Import):
            assert not WORLDLY & {alias.name for alias in node.names}, f"line {node.lineno}"
