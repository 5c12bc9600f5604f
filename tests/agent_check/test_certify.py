"""Whole searches against programs on paper, whose true level is known: near it, and never above."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_agent_check.certify import ERROR, MOST_VOID, REFINEMENTS, RESOLUTION, Certifier, LevelTest, Rules
from tests.agent_check.paper_program import CURVES, NOISES, PaperProgram, program, sweep, true_level

DAY_S = 86400.0
SEEDS = range(20)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("noise", NOISES)
def test_twenty_of_twenty_are_near_the_true_level_and_none_above(curve: str, noise: str) -> None:
    truth = true_level(CURVES[curve], 0.05)

    found = [sweep(program(curve, noise, seed), Rules(time_limit_s=DAY_S)).level for seed in SEEDS]

    assert all(level is not None and (1 - RESOLUTION) * truth <= level <= truth for level in found), found


@pytest.mark.parametrize("target", [0.03, 0.2])
def test_other_targets_too(target: float) -> None:
    truth = true_level(CURVES["trainer"], target)

    found = [
        sweep(program("trainer", "gaussian", seed), Rules(target=target, time_limit_s=10 * DAY_S)).level
        for seed in range(5)
    ]

    assert all(level is not None and (1 - RESOLUTION) * truth <= level <= truth for level in found), found


@pytest.mark.parametrize("noise", NOISES)
def test_level_that_harms_a_little_more_than_the_target_does_not_pass(noise: str) -> None:
    verdicts = []
    for seed in range(20):
        paper = program("trainer", noise, seed)
        paper.harm = lambda level: 0.0503
        verdicts.append(sweep(paper, Rules(levels=(0.3,), time_limit_s=3 * 3600.0)).tests[0].verdict)

    assert verdicts.count("pass") <= 1  # 20 games, each lost one time in 400 at most


def test_harm_in_rare_bursts_is_seen_by_enough_pairs() -> None:
    truth = true_level(CURVES["trainer"], 0.05)
    rules = Rules(time_limit_s=DAY_S / 2, least_pairs=120)

    found = [sweep(program("trainer", "gaussian", seed, bursts_of_harm=True), rules).level for seed in SEEDS]

    assert all(level is None or level <= truth for level in found), found
    assert any(level is not None for level in found)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_program_whose_progress_is_noise_gets_nothing_and_hears_why(spread: float) -> None:
    for seed in SEEDS:
        rng = random.Random(seed)
        noise = (math.exp(rng.gauss(0, spread)) for _ in iter(int, 1))

        found = sweep(PaperProgram(CURVES["game"], noise, rng), Rules())

        assert found.level is None
        assert [test.verdict for test in found.tests] == ["undecided"]
        assert "the progress is too uneven" in (found.why or "")
        assert "pairs of windows" in (found.why or "")


def test_noise_is_given_up_long_before_the_time_is_up() -> None:
    rng = random.Random(4)
    noise = (math.exp(rng.gauss(0, 0.8)) for _ in iter(int, 1))
    paper = PaperProgram(CURVES["game"], noise, rng)

    sweep(paper, Rules())

    assert paper.windows < 100


def test_harmless_work_passes_everywhere() -> None:
    paper = program("game", "gaussian", 1)
    paper.harm = lambda level: 0.0

    found = sweep(paper, Rules())

    assert (found.level, found.why) == (0.6, None)
    assert [test.verdict for test in found.tests] == ["pass"] * 8


def test_work_that_harms_at_every_level_passes_nowhere() -> None:
    paper = program("trainer", "gaussian", 1)
    paper.harm = lambda level: 0.4

    found = sweep(paper, Rules())

    assert found.level is None
    assert {test.verdict for test in found.tests} == {"harms"}
    assert min(test.level for test in found.tests) < 0.02


@pytest.mark.parametrize("limit_s", [60.0, 600.0, 1800.0, 3600.0])
def test_time_is_never_overrun_and_what_passed_stays(limit_s: float) -> None:
    paper = program("trainer", "gaussian", 3)

    found = sweep(paper, Rules(time_limit_s=limit_s))

    assert paper.t - 1000.0 <= limit_s
    assert found.level is None or found.level <= 0.125
    assert found.why is not None


def test_what_kept_the_level_from_going_higher_is_named() -> None:
    rng = random.Random(3)
    noise = (math.exp(rng.gauss(0, 0.02)) for _ in iter(int, 1))

    found = sweep(PaperProgram(CURVES["trainer"], noise, rng), Rules())

    first = next(test for test in found.tests if test.verdict == "undecided")
    assert found.level is not None
    assert found.level < first.level
    assert found.why == f"level {first.level:.3f}: {first.why}"


@pytest.mark.parametrize(
    ("fault", "held", "why"),
    [
        pytest.param("the counter went back", 1.0, "the counter went back", id="a counter that goes back"),
        pytest.param(None, 0.1, "the level was not held", id="an idle job"),
    ],
)
def test_pairs_that_say_nothing_end_the_search(fault: str | None, held: float, why: str) -> None:
    paper = program("trainer", "gaussian", 3, fault=lambda number: fault, held=held)

    found = sweep(paper, Rules())

    assert found.level is None
    assert found.tests[0].verdict == "void"
    assert why in (found.why or "")
    assert paper.windows == 2 * MOST_VOID


def test_counter_that_stands_still_is_never_fine() -> None:
    rng = random.Random(1)
    found = sweep(PaperProgram(CURVES["game"], (0.0 for _ in iter(int, 1)), rng), Rules())

    assert found.level is None
    assert found.tests[0].verdict == "void"


def test_some_lost_pairs_change_nothing_but_the_time() -> None:
    paper = program("trainer", "gaussian", 5, fault=lambda number: "the job ended" if number % 5 == 0 else None)

    found = sweep(paper, Rules(time_limit_s=DAY_S))

    assert found.level is not None
    assert 0.9 * 0.125 <= found.level <= 0.125


@given(
    st.lists(st.sampled_from(["pass", "harms", "close"]), min_size=1, max_size=40),
    st.lists(st.floats(0.01, 1), min_size=1, max_size=8, unique=True),
)
@settings(max_examples=200)
def test_all_levels_up_to_the_certified_one_have_passed(verdicts: list[str], levels: list[float]) -> None:
    found = Certifier(Rules(levels=tuple(sorted(levels)), time_limit_s=1e9))
    turns = iter(verdicts)
    while found.next(0.0, 1.0) is not None:
        found.now.verdict = next(turns, "harms")  # type: ignore[assignment]

    tried = [test.level for test in found.tests]
    assert len(set(tried)) == len(tried)
    for test in found.tests:
        assert found.level is None or test.level > found.level or test.verdict == "pass"
        assert test.verdict != "pass" or (found.level is not None and test.level <= found.level)
    ascent = [test.error for test in found.tests if test.error == ERROR / 2]
    assert sum(test.error for test in found.tests) - sum(ascent) <= ERROR / 2 + 1e-12
    assert len(found.tests) - len(ascent) <= REFINEMENTS


def test_a_pass_takes_its_least_pairs() -> None:
    test = LevelTest(0.3, 0.5, 0.0025, least_pairs=33)
    paper = program("trainer", "gaussian", 1)
    paper.harm = lambda level: 0.0
    while not test.over:
        test.hear(paper.pair(0.3))

    assert (test.verdict, len(test.counted)) == ("pass", 33)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"target": 0.0}, "target"),
        ({"target": 1.0}, "target"),
        ({"levels": ()}, "levels"),
        ({"levels": (0.2, 0.1)}, "levels"),
        ({"levels": (0.1, 1.5)}, "levels"),
        ({"levels": (0.001,)}, "levels"),
    ],
)
def test_rules_that_make_no_sense_are_refused(changes: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Rules(**changes)  # type: ignore[arg-type]
