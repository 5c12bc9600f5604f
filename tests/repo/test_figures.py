"""Every figure on README.md is one that a benchmark printed, rounded as it is shown."""

from __future__ import annotations

import json

import pytest

from tests.repo.figures import faults
from tests.repo.test_house import ROOT

FILES = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
RESULTS = {path.stem: json.loads(path.read_text("utf-8")) for path in FILES}


def test_figures_of_the_readme_come_from_results() -> None:
    assert faults((ROOT / "README.md").read_text("utf-8"), RESULTS) == []


def test_every_result_is_an_object_of_a_benchmark_that_exists() -> None:
    assert [name for name, value in RESULTS.items() if not isinstance(value, dict)] == []
    assert [name for name in RESULTS if not (ROOT / "benchmarks" / f"{name}.py").is_file()] == []


MADE = {"frames": {"rows": [{"growth": 0.2614, "held": 0.1604}], "cost_s": 1.94e-6}}
TEXT = "Frames grow by 26 % while 0.16 is held, and a unit costs 1.9 µs."
ROWS = [
    ("a page without figures", "Four packages, at duty 0.3, in Python 3.11.", []),
    (
        "figures as the result has them",
        f"{TEXT}\n<!-- figures: frames: 26 = /rows/0/growth * 100; 1.9 = /cost_s * 1000000; 0.16 = /rows/0/held -->",
        [],
    ),
    ("a figure without a comment", TEXT, ["26: must name its benchmark in a comment below",
                                          "1.9: must name its benchmark in a comment below"]),
    ("code is no prose", "```text\nheld 0.2 over 4.0 s\n```\n\n`sleep 3 s`", []),
    ("a figure that is another one by now", "It costs 1.8 µs.\n<!-- figures: frames: 1.8 = /cost_s * 1000000 -->",
     ["frames: /cost_s is 1.9; the page shows 1.8"]),
    ("a result that is not there", "It costs 1.8 µs.\n<!-- figures: speed: 1.8 = /cost_s -->",
     ["speed: must be a result in benchmarks/results; found none"]),
    ("a pointer that leads nowhere", "It costs 1.8 µs.\n<!-- figures: frames: 1.8 = /rows/1/held -->",
     ["frames: /rows/1/held must be a number in the result; found none"]),
    ("a comment without its figure", "It costs little.\n<!-- figures: frames: 1.9 = /cost_s * 1000000 -->",
     ["frames: 1.9 must stand in the paragraph above"]),
    ("a row that cannot be read", "It is fast.\n<!-- figures: frames: fast -->",
     ["frames: 'fast' must read SHOWN = /POINTER [* TIMES]"]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "page", "told"), ROWS)
def test_page_with(what: str, page: str, told: list[str]) -> None:
    assert faults(page, MADE) == told
