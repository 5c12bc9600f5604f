"""Ctrl-C while a program still loads: it ends with 130 and without a word, however far it has come."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.agent_check.jobs_on_trial import HEARS_INTERRUPTS
from tests.repo.test_house import PACKAGES, ROOT

# Stands in for a module that every program loads, and says when it is being loaded; then it waits for the signal.
HANGS = """
import os
os.write(1, b"loading\\n")
os.read(0, 1)
os.write(1, b"nobody has interrupted it\\n")
"""


def scripts() -> dict[str, str]:
    """Every console script, and the function that it calls."""
    found: dict[str, str] = {}
    for folder in PACKAGES:
        project = tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text("utf-8"))["project"]
        found |= project.get("scripts", {})
    return found


SCRIPTS = scripts()


def test_every_program_is_listed() -> None:
    assert sorted(SCRIPTS) == ["oarbank-agent-check", "oarbank-llmserve", "oarbank-sdk"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_door_imports_nothing_outside_of_the_try(script: str) -> None:
    module, _, function = SCRIPTS[script].partition(":")
    package, _, name = module.partition(".")
    folder = next(folder for folder, known in PACKAGES.items() if known == package)
    source = ROOT / "packages" / folder / "src" / package
    tree = ast.parse((source / f"{name}.py").read_text("utf-8"))
    outside = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    (main,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    before, guarded = main.body

    assert outside == ["__future__"]
    assert not [node for node in tree.body if isinstance(node, ast.Import)]
    assert main.name == function
    assert isinstance(before, ast.Expr)  # its docstring
    assert isinstance(guarded, ast.Try)
    init = ast.parse((source / "__init__.py").read_text("utf-8"))
    assert [node for node in ast.walk(init) if isinstance(node, (ast.Import, ast.ImportFrom))] == []


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX: signals")
@pytest.mark.parametrize("module", ["argparse", "importlib.metadata"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_interrupt_while_it_loads_is_130_and_no_word(script: str, module: str, tmp_path: Path) -> None:
    blocked = tmp_path / "sitecustomize.py"
    if module == "argparse":
        (tmp_path / "argparse.py").write_text(HANGS)
    else:  # a part of a package: its loading is stopped by whoever finds modules
        body = "\n".join(f"        {line}" for line in HANGS.strip().splitlines())
        blocked.write_text(
            "import sys\n\nclass Finder:\n    def find_spec(self, name, path=None, target=None):\n"
            f"        if name != {module!r}:\n            return None\n{body}\n\nsys.meta_path.insert(0, Finder())\n"
        )
    program = str(Path(sys.executable).with_name(script))
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_INTERRUPTS, program, "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()

    assert (process.returncode, out, err) == (130, "", "")
