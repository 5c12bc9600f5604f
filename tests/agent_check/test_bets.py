"""The test by betting: fair whatever the noise, sure of nothing too early, and never won by a mean harm above."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_agent_check.bets import EFFECTS, LEAST_SCALE, OWN_PAIRS, Bets, interval, needed, scale_of

SIZES = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=7)
SLOWDOWNS = st.lists(st.floats(-6, 6, allow_nan=False), min_size=1, max_size=30)


def settled(at: float, slowdowns: list[float], scale: float = 0.01) -> Bets:
    bets = Bets(at)
    for one in slowdowns:
        bets.hear(one, scale)
    return bets


@given(SIZES, st.floats(1e-4, 10))
@settings(max_examples=50)
def test_game_is_fair_over_all_coins_whatever_the_sizes(sizes: list[float], scale: float) -> None:
    """Each pair's difference is as likely too large as too small: over all signs the mean wealth is what it was."""
    wealths = []
    for signs in product((1, -1), repeat=len(sizes)):
        wealths.append(settled(0.0, [sign * size for sign, size in zip(signs, sizes, strict=True)], scale))

    assert sum(math.exp(bets.below()) for bets in wealths) / len(wealths) == pytest.approx(1)
    assert sum(math.exp(bets.above()) for bets in wealths) / len(wealths) == pytest.approx(1)


@given(SLOWDOWNS, st.floats(-3, 3), st.floats(0, 2))
@settings(max_examples=100)
def test_a_larger_value_never_speaks_less_for_below(slowdowns: list[float], at: float, more: float) -> None:
    lower, higher = settled(at, slowdowns), settled(at + more, slowdowns)

    assert higher.below() >= lower.below() - 1e-9
    assert higher.above() <= lower.above() + 1e-9


@given(SLOWDOWNS)
@settings(max_examples=100)
def test_mean_above_never_wins_a_long_game(slowdowns: list[float]) -> None:
    """The log of the wealth is concave, so each bettor's growth is at most that of a constant slowdown of the mean."""
    mean = sum(slowdowns) / len(slowdowns)

    assert settled(mean, slowdowns).below() <= math.log(len(EFFECTS)) + 1e-9
    assert settled(mean - 0.1, slowdowns).below() <= 1e-9


@pytest.mark.parametrize(
    ("slowdowns", "at", "pairs"),
    [
        pytest.param([0.0], 0.05, 12, id="a clear difference takes a dozen pairs"),
        pytest.param([0.045, 0.005], 0.05, 40, id="a difference of the noise's size takes some more"),
    ],
)
def test_pairs_until_a_bettor_is_sure(slowdowns: list[float], at: float, pairs: int) -> None:
    bets, taken = Bets(at), 0
    while bets.below() < needed(0.0025):
        bets.hear(slowdowns[taken % len(slowdowns)], 0.02)
        taken += 1

    assert 9 <= taken <= pairs
    assert bets.above() < 0


def test_no_bet_wins_before_the_sign_alone_could() -> None:
    bets = settled(0.0, [-1e9] * 8, scale=1.0)

    assert bets.below() <= 8 * math.log(2)
    assert bets.below() < needed(0.0025)


@pytest.mark.parametrize(
    ("slowdowns", "prior", "scale"),
    [
        ([], None, None),
        ([0.1] * (OWN_PAIRS - 1), None, None),
        ([0.1] * (OWN_PAIRS - 1), 0.02, 0.02),
        ([0.1] * OWN_PAIRS, 0.02, LEAST_SCALE),
        ([0.0, 0.1, 0.2, 0.3, 0.4], None, 0.14826),
        ([0.0, 0.1, 0.2, 0.3, 1e9], None, 0.14826),
    ],
)
def test_scale_is_what_earlier_pairs_show(slowdowns: list[float], prior: float | None, scale: float | None) -> None:
    assert scale_of(slowdowns, prior) == (None if scale is None else pytest.approx(scale))


@given(SLOWDOWNS, st.floats(0.01, 1), st.floats(1e-4, 0.4), st.floats(1e-4, 0.4))
@settings(max_examples=60)
def test_interval_ends_where_a_bettor_has_won(
    slowdowns: list[float], scale: float, low_error: float, high_error: float
) -> None:
    low, high = interval(slowdowns, [scale] * len(slowdowns), low_error=low_error, high_error=high_error)

    if high is not None:
        assert settled(high + 1e-6, slowdowns, scale).below() >= needed(high_error) - 1e-6
        assert settled(high - 1e-3 * scale, slowdowns, scale).below() < needed(high_error)
    if low is not None:
        assert settled(low - 1e-6, slowdowns, scale).above() >= needed(low_error) - 1e-6
        assert settled(low + 1e-3 * scale, slowdowns, scale).above() < needed(low_error)


def test_interval_of_no_pairs_is_unknown() -> None:
    assert interval([], [], low_error=0.01, high_error=0.01) == (None, None)
