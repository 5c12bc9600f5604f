"""The rules are data: each is used, each that is used exists, and the level is kept."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import oarbank_conformkit
from oarbank_conformkit.rules import catalogue
from oarbank_sdk.module import OPTIONAL, REQUIRED

PACKAGE = Path(oarbank_conformkit.__file__).parent
SUITES = {rule.suite for rule in catalogue().values()}
ID = re.compile(rf"({'|'.join(SUITES)})\.[a-z_]+")
PURE = (
    "checks",
    "evidence",
    "evidence_protocol",
    "fixtures",
    "goldens",
    "limits",
    "plan",
    "report",
    "result_schema",
    "rule_list",
    "secrets_granted",
    "shares",
    "steps",
)


def ids_in_source() -> set[str]:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ID.fullmatch(node.value):
                found.add(node.value)
    return found - {*REQUIRED, *OPTIONAL} - {"secrets.json"}


def test_every_rule_is_used_and_every_rule_that_is_used_exists() -> None:
    assert ids_in_source() == set(catalogue())


def test_every_rule_says_what_it_asks_in_a_sentence_and_where_it_comes_from() -> None:
    for rule in catalogue().values():
        assert rule.level in ("must", "should"), rule.id
        assert rule.says.endswith("."), rule.id
        assert rule.source, rule.id


def test_pure_files_import_no_clock_file_process_or_thread() -> None:
    world = {"time", "threading", "subprocess", "psutil", "pathlib", "tempfile", "shutil", "signal", "socket", "random"}
    paths = [PACKAGE / f"{name}.py" for name in PURE]
    paths += [*(PACKAGE / "judge").glob("*.py"), *(PACKAGE / "render").glob("*.py")]
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not world & {name.partition(".")[0] for name in names}, path


def test_the_kit_starts_no_process_itself() -> None:
    users = [
        path.name for path in PACKAGE.rglob("*.py") if re.search(r"^(import|from) subprocess", path.read_text(), re.M)
    ]

    assert users == []
