"""Every rule of the kit has who breaks it: a wrong runner, or where only files are judged a wrong file in a test.

A mutant is a module below tests/ with a constant BREAKS, the ids of the rules that it must fail. What has none is named
here, so that a new rule comes with its mutant.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from tests.repo.test_house import ROOT, tracked

RULES = {
    rule["id"]: rule
    for rule in tomllib.loads((ROOT / "packages/conformkit/src/oarbank_conformkit/rules.toml").read_text())["rule"]
}
# Suites that look at files and start nothing: their mutants are wrong bundles, written by tests of the kit.
OF_FILES = ("manifest.", "fixture.")


def breaks(path: Path) -> set[str]:
    """The rules that a file says it breaks, without running it."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "BREAKS" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


MUTANTS = {path: broken for path in tracked("tests/*.py") if (broken := breaks(path))}
TESTS_OF_THE_KIT = "".join(path.read_text("utf-8") for path in tracked("tests/conformkit/test_*.py"))


def test_mutants_break_rules_that_exist() -> None:
    assert len(MUTANTS) > 15
    assert {path.name: sorted(broken - set(RULES)) for path, broken in MUTANTS.items() if broken - set(RULES)} == {}


def test_every_rule_that_must_hold_has_a_runner_that_breaks_it() -> None:
    broken = set().union(*MUTANTS.values())
    missing = [
        id for id, rule in RULES.items()
        if rule["level"] == "must" and not id.startswith(OF_FILES) and id not in broken
    ]  # fmt: skip
    assert missing == [], "each needs a runner in tests/mutants whose BREAKS names it"


def test_every_other_rule_is_judged_in_a_test_of_the_kit() -> None:
    broken = set().union(*MUTANTS.values())
    missing = [
        id for id, rule in RULES.items()
        if (rule["level"] != "must" or id.startswith(OF_FILES)) and id not in broken
        and f'"{id}"' not in TESTS_OF_THE_KIT
    ]  # fmt: skip
    assert missing == [], "each needs a wrong file, or a mutant, in a test that names it"
