"""What a program writes is what it would write now, and none of it is left over."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib

import pytest

from tests.repo.test_house import ROOT, tracked

ENVS = tomllib.loads((ROOT / "hatch.toml").read_text("utf-8"))["envs"]
CHECKS = [*ENVS["docs"]["scripts"]["check"], "python tools/freeze.py --check", "python tools/public_names.py --check"]


@pytest.mark.parametrize("command", CHECKS)
def test_page_or_list_is_what_its_program_writes(command: str) -> None:
    program, *words = shlex.split(command)
    assert program == "python"
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=False)

    new_rules = re.fullmatch(r"(oarbank_conformkit\.txt: new: rule .*\n)+", done.stdout)
    assert done.returncode == 0 or new_rules, done.stdout + done.stderr


def test_every_check_has_its_update() -> None:
    updates = ENVS["docs"]["scripts"]["update"]

    assert [f"{command} --check" for command in updates] == ENVS["docs"]["scripts"]["check"]


def test_models_are_those_of_the_schemas_and_no_others() -> None:
    """The generator itself compares every byte: `hatch run gen:check`, in .ci/run."""
    generated = ROOT / "packages/sdk/src/oarbank_sdk/contracts/_generated/models.py"
    classes = {node.name for node in ast.parse(generated.read_text("utf-8")).body if isinstance(node, ast.ClassDef)}
    schemas = [json.loads(path.read_text("utf-8")) for path in (ROOT / "schemas").glob("*.schema.json")]
    titles = titles_in(schemas)

    assert sorted(classes - titles) == []


def titles_in(node: object) -> set[str]:
    """Every title in a schema, of the whole and of its parts."""
    if isinstance(node, list):
        return set().union(*map(titles_in, node)) if node else set()
    if not isinstance(node, dict):
        return set()
    own = {node["title"]} if isinstance(node.get("title"), str) else set()
    return own | {name for child in node.values() for name in titles_in(child)}


def test_files_that_say_they_are_generated_are_known() -> None:
    """By their first lines: a program's output that no check covers would drift unseen."""
    known = {
        "docs/api.md", "docs/conformance.md", "docs/never-run.md",
        "packages/sdk/src/oarbank_sdk/contracts/_generated/models.py",
    }  # fmt: skip
    says = re.compile(r"(?m)\A(?:.*\n){0,6}.*(?:Generated from|[Ww]ritten by `hatch run|written by `hatch run)")
    found = [path for path in tracked("*.md", "*.py") if says.match(path.read_text("utf-8"))]

    assert {path.relative_to(ROOT).as_posix() for path in found} == known
