"""Where steps are cut: as few slices as stay below the longest one asked for, learnt from those that were seen."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.slices import AIM, Slices


def slices_s(cuts: frozenset[int], parts_s: list[float]) -> list[float]:
    """What the slices between these cuts take on a device whose parts take so long."""
    edges = [0, *(cut + 1 for cut in sorted(cuts)), len(parts_s)]
    return [sum(parts_s[first:last]) for first, last in pairwise(edges)]


def run(slices: Slices, parts_s: list[float], longest_s: float, tokens: int = 1) -> list[float]:
    """One step as an engine takes it; its slices."""
    cuts = slices.cuts(tokens, longest_s)
    first = 0
    found = slices_s(cuts, parts_s)
    for last, seconds in zip([*sorted(cuts), len(parts_s) - 1], found, strict=True):
        slices.took(tokens, first, last, seconds)
        first = last + 1
    return found


ROWS = [
    # behaviour                             parts                     longest  slices of the second step
    ("a step that is short is not cut", [0.001] * 5, 1.0, [0.005]),
    ("equal layers go together", [0.001] * 9, 0.0036, [0.003] * 3),
    ("a long head stands alone", [*[0.001] * 6, 0.009], 0.008, [0.006, 0.009]),
    ("what cannot be shorter is cut everywhere", [0.010] * 4, 0.002, [0.010] * 4),
]


@pytest.mark.parametrize(("parts_s", "longest_s", "then"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_second_step_is_cut_by_what_the_first_took(parts_s: list[float], longest_s: float, then: list[float]) -> None:
    slices = Slices(len(parts_s) - 1)
    first = run(slices, parts_s, longest_s)

    assert first == parts_s  # nothing was known: behind every layer
    assert run(slices, parts_s, longest_s) == pytest.approx(then)


def test_sizes_do_not_answer_for_each_other() -> None:
    slices = Slices(3)
    run(slices, [0.001] * 4, 1.0, tokens=1)

    assert slices.cuts(1, 1.0) == frozenset()
    assert slices.cuts(2, 1.0) == frozenset({0, 1, 2})
    assert slices.cuts(64, 1.0) == frozenset({0, 1, 2})


def test_large_steps_of_nearly_a_size_do() -> None:
    slices = Slices(3)
    run(slices, [0.001] * 4, 1.0, tokens=120)

    assert slices.cuts(128, 1.0) == frozenset()


def test_device_that_slows_down_gets_more_cuts_and_fewer_when_it_recovers() -> None:
    slices, longest_s = Slices(19), 0.005
    run(slices, [0.001] * 20, longest_s)
    quick = len(run(slices, [0.001] * 20, longest_s))
    for _ in range(12):
        slow = run(slices, [0.002] * 20, longest_s)
    for _ in range(60):
        again = run(slices, [0.001] * 20, longest_s)

    assert (quick, len(slow), len(again)) == (5, 10, 5)
    assert max(slow) <= longest_s


def test_one_disturbed_slice_costs_one_cut_in_the_end() -> None:
    slices = Slices(19)
    run(slices, [0.001] * 20, 0.005)
    slices.took(1, 0, 3, 10.0)
    for _ in range(30):
        found = run(slices, [0.001] * 20, 0.005)

    assert len(found) <= 6


@given(
    parts_s=st.lists(st.floats(1e-5, 0.05), min_size=2, max_size=60),
    longest_s=st.floats(1e-4, 0.2),
    tokens=st.integers(1, 600),
)
def test_slices_stay_below_the_longest_where_a_layer_does(parts_s: list[float], longest_s: float, tokens: int) -> None:
    slices = Slices(len(parts_s) - 1)
    run(slices, parts_s, longest_s, tokens)
    for _ in range(3):
        found = run(slices, parts_s, longest_s, tokens)

    assert sum(found) == pytest.approx(sum(parts_s))
    assert max(found) <= max(AIM * longest_s * 1.001, *parts_s)
