"""The page of rules: fresh, whole, and honest about the place of each suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.conformance_page import Unplaced, filled

ROOT = Path(__file__).parents[2]
RULE = {"id": "duty.burst", "level": "must", "says": "No | burst.", "source": "kit"}
PAGE = "words\n<!-- rules: duty -->\nold\n<!-- end -->\nmore words\n"


def test_the_page_holds_the_rules_as_they_are() -> None:
    check = [sys.executable, "-m", "tools.conformance_page", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_table_takes_its_place_and_words_stay() -> None:
    fresh = filled(PAGE, [RULE])

    assert fresh.startswith("words\n<!-- rules: duty -->\n| Rule |")
    assert "| `duty.burst` | must | No \\| burst. | kit |\n<!-- end -->\nmore words\n" in fresh
    assert filled(fresh, [RULE]) == fresh


@pytest.mark.parametrize(
    ("why", "page", "rules"),
    [
        ("a suite without a place", PAGE, [RULE, RULE | {"id": "stop.exit"}]),
        ("a place without a suite", PAGE, []),
        ("two places", PAGE + PAGE, [RULE]),
    ],
)
def test_a_suite_that_nobody_explains_is_an_error(why: str, page: str, rules: list[dict[str, str]]) -> None:
    with pytest.raises(Unplaced, match="must have one place"):
        filled(page, rules)
