"""A sweep in words: no harm without the share that did it, and why where there is no level."""

from __future__ import annotations

import math
import random

import pytest

from oarbank_agent_check import sweep_view
from oarbank_agent_check.certify import Certifier, Rules
from tests.agent_check.paper_program import CURVES, PaperProgram, program, sweep


def noise_only() -> PaperProgram:
    rng = random.Random(2)
    return PaperProgram(CURVES["game"], (math.exp(rng.gauss(0, 1)) for _ in iter(int, 1)), rng)


@pytest.mark.parametrize(
    ("paper", "line"),
    [
        (program("game", "gaussian", 1), "level 0.050: passes, harm "),
        (program("game", "gaussian", 1), " in 20 pairs, held 0.050"),
        (program("game", "gaussian", 1), "level 0.400: harms more, harm "),
        (program("trainer", "gaussian", 0), ": too close to the target, harm "),
        (program("game", "gaussian", 1, held=0.5), "held 0.025, less than asked"),
        (
            program("game", "gaussian", 1, held=0.1),
            "level 0.050: nothing was measured, harm ? (? to ?) in 0 pairs, held -",
        ),
        (noise_only(), "the progress is too uneven"),
    ],
)
def test_each_level_gets_a_line(paper: PaperProgram, line: str) -> None:
    found = sweep(paper, Rules(time_limit_s=86400.0))

    lines = [sweep_view.verdict_line(test) for test in found.tests]

    assert any(line in one for one in lines), lines
    assert all("held" in one and "\n" not in one for one in lines)


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (sweep(program("game", "gaussian", 1), Rules()), "certified 0.300 of the time, at a target of 5.0%"),
        (
            sweep(program("trainer", "gaussian", 1), Rules(time_limit_s=2500.0)),
            "; not certified further up: ",
        ),
        (sweep(noise_only(), Rules()), "nothing is certified: the progress is too uneven"),
    ],
)
def test_the_end_says_what_is_certified_or_why_not(found: Certifier, line: str) -> None:
    assert line in sweep_view.end_line(found)


def test_live_line_says_how_it_stands() -> None:
    assert sweep_view.live(Certifier(Rules()), 75.0) == (
        "1:15  level 0.050  pairs 0  harm ?  target 5.0%  held -  certified -"
    )


def test_pair_that_does_not_count_is_told() -> None:
    paper = program("game", "gaussian", 1)

    assert sweep_view.pair_line(paper.pair(0.3)) is None
    paper.held = 0.0
    assert sweep_view.pair_line(paper.pair(0.3)) == (
        "level 0.300: a pair of windows does not count: the level was not held: the work took 0.000 of 0.300"
    )
