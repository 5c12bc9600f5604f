"""The bounds around a share that rests on a few looks."""

from __future__ import annotations

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.sources.point_samples import (
    DOUBT,
    LONGEST_PERIOD_US,
    SHORTEST_PERIOD_US,
    bounds,
    looks,
    shorter_period,
)

SHARES = st.floats(0, 1)
COUNTS = st.integers(1, 72)


@given(SHARES, COUNTS)
def test_the_bounds_hold_the_share_between_0_and_1(share, count):
    low, high = bounds(share, count)
    assert 0 <= low <= share <= high <= 1


@given(SHARES, COUNTS)
def test_more_looks_never_widen_the_bounds(share, count):
    wide, narrow = bounds(share, count), bounds(share, count + 1)
    assert wide[0] <= narrow[0] + 1e-9
    assert narrow[1] <= wide[1] + 1e-9


@given(SHARES, COUNTS)
def test_rounding_widens(share, count):
    assert bounds(share, count, 0.005)[0] <= bounds(share, count)[0]
    assert bounds(share, count, 0.005)[1] >= bounds(share, count)[1]


@pytest.mark.parametrize("count", [1, 2, 3, 6, 12, 36])
@pytest.mark.parametrize("truth", [0.05, 0.1, 0.3, 0.5, 0.9])
def test_the_true_share_lies_below_the_lower_bound_in_one_window_of_200_at_most(truth, count):
    # Exactly: the chance of each number of looks that found the job, where the bound would accuse it.
    wrong = sum(
        comb(count, seen) * truth**seen * (1 - truth) ** (count - seen)
        for seen in range(count + 1)
        if bounds(seen / count, count)[0] > truth
    )
    assert wrong <= DOUBT


@pytest.mark.parametrize(
    ("count", "duty", "convicted"),
    [(12, 0.3, True), (12, 0.5, True), (12, 0.6, False), (6, 0.25, True), (2, 0.1, False), (2, 0.0, False)],
)
def test_who_takes_everything_is_found_out_where_the_looks_are_many(count, duty, convicted):
    assert (bounds(1.0, count, 0.005)[0] > duty + 0.1) is convicted


@pytest.mark.parametrize(
    ("stamps", "period"),
    [
        ([], LONGEST_PERIOD_US),
        ([5_000_000], LONGEST_PERIOD_US),
        ([5_000_000, 7_000_000], LONGEST_PERIOD_US),
        ([5_000_000, 5_167_000, 9_000_000], 167_000),
        ([5_000_000, 5_000_900, 5_334_000], 333_100),  # one look, stamped twice
    ],
)
def test_stamps_show_how_long_a_period_can_be(stamps, period):
    assert shorter_period(LONGEST_PERIOD_US, stamps) == period


@given(st.lists(st.integers(0, 1 << 40), max_size=8), st.integers(SHORTEST_PERIOD_US, LONGEST_PERIOD_US))
def test_a_period_only_gets_shorter(stamps, period):
    assert SHORTEST_PERIOD_US <= shorter_period(period, stamps) <= period


@pytest.mark.parametrize(
    ("window_us", "period_us", "count"),
    [(2_000_000, 1_000_000, 2), (2_000_000, 166_000, 12), (100_000, 1_000_000, 1), (2_000_000, 1, 12)],
)
def test_a_window_holds_so_many_looks(window_us, period_us, count):
    assert looks(window_us, period_us) == count
