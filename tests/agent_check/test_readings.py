"""A number, a known zero or unknown: how quantities add up and what a sample says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.readings import ProcessTime, Sample, Unknown, UnknownProcess, sample_of, seconds, total

HIDDEN = Unknown("hidden. Run as its owner.")
LATER = Unknown("it is late. Wait.")
QUANTITIES = st.lists(st.one_of(st.integers(0, 1 << 70), st.just(HIDDEN)))


@pytest.mark.parametrize(
    ("quantities", "then"),
    [
        ([], 0),
        ([0, 0], 0),
        ([3, 4], 7),
        ([1 << 62, 1 << 62], 1 << 63),
        ([3, HIDDEN], HIDDEN),
        ([HIDDEN, 0, LATER], HIDDEN),
    ],
)
def test_quantities_add_up_and_one_unknown_is_enough(quantities, then):
    assert total(quantities) == then


@given(QUANTITIES, st.randoms())
def test_unknown_stays_unknown_through_every_sum(quantities, chance):
    """However the same quantities are grouped and ordered, the sum is the same number or unknown."""
    shuffled = list(quantities)
    chance.shuffle(shuffled)
    cut = chance.randint(0, len(shuffled))
    regrouped = total([total(shuffled[:cut]), total(shuffled[cut:])])
    assert regrouped == total(quantities)
    assert isinstance(regrouped, Unknown) == (HIDDEN in quantities)


@pytest.mark.parametrize(("quantity", "then"), [(0, 0.0), (1_500_000_000, 1.5), (HIDDEN, None)])
def test_seconds_of_an_unknown_are_null_not_zero(quantity, then):
    assert seconds(quantity) == then
    assert (seconds(quantity) is None) == isinstance(quantity, Unknown)


def sample(busy, processes=(), hidden=None, window_s=2.0) -> Sample:
    return sample_of(
        t=1e9,
        window_s=window_s,
        busy=busy,
        processes=processes,
        hidden=hidden or {},
        source="cpu-threads",
        detail="a clock",
    )


ONE = ProcessTime(5, 100.0, 600_000_000)
IDLE = ProcessTime(6, 101.0, 0)
UNREAD = ProcessTime(7, 102.0, HIDDEN)


@pytest.mark.parametrize(
    ("busy", "processes", "hidden", "share", "unknown"),
    [
        (600_000_000, [ONE, IDLE], {}, 0.3, []),
        (0, [IDLE], {}, 0.0, []),
        (0, [], {}, 0.0, []),
        (8_000_000_000, [ONE], {}, 4.0, []),  # engines add up; nothing is bent to 1
        (600_000_000, [ONE, UNREAD], {}, None, [(7, HIDDEN.reason)]),
        (0, [ONE], {9: LATER, 8: HIDDEN}, None, [(8, HIDDEN.reason), (9, LATER.reason)]),
        (LATER, [ONE], {}, None, [(None, LATER.reason)]),
        (0, [UNREAD], {7: HIDDEN}, None, [(7, HIDDEN.reason)]),
    ],
)
def test_one_unknown_process_makes_the_sample_unknown(busy, processes, hidden, share, unknown):
    made = sample(busy, processes, hidden)
    assert made.share == pytest.approx(share) if share is not None else made.share is None
    assert (made.busy_s is None) == (share is None)
    assert made.unknown == tuple(UnknownProcess(*entry) for entry in unknown)
    assert set(made.pids) == {p.pid for p in processes} | set(hidden)


@pytest.mark.parametrize("window_s", [0.0, -1.0, float("nan")])
def test_a_sample_without_a_window_is_refused(window_s):
    with pytest.raises(ValueError, match="window must be above 0"):
        sample(0, window_s=window_s)


def test_the_document_says_null_for_what_is_unknown_and_leaves_out_bounds_that_are_not_there():
    document = sample(1, [IDLE, UNREAD]).to_json()
    assert document == {
        "t": 1e9,
        "window_s": 2.0,
        "pids": [6, 7],
        "share": None,
        "busy_s": None,
        "source": "cpu-threads",
        "unknown": [{"pid": 7, "reason": HIDDEN.reason}],
        "processes": [{"pid": 6, "start": 101.0, "busy_s": 0.0}, {"pid": 7, "start": 102.0, "busy_s": None}],
        "detail": "a clock",
    }


def test_the_document_gives_bounds_where_the_source_is_coarse():
    document = Sample(1.0, 2.0, (5,), 0.3, 0.6, "nvml", low=0.25, high=0.35).to_json()
    assert (document["low"], document["high"]) == (0.25, 0.35)
    assert "detail" not in document
