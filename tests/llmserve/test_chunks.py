"""Sizes of units: all of a prompt, never one token of it alone, never a burst that was avoidable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.chunks import FREE_S, GOVERNED_S, PROBE, SLICES, STARVED_DUTY, Chunks, Width


def sizes(
    prompt: int,
    *,
    full: int = 128,
    scale: float = 1.0,
    token_s: float = 0.001,
    governed: bool = False,
    longest_s: float | None = None,
) -> list[int]:
    chunks, left, taken = Chunks(full, longest_s), prompt, []
    while left:
        size = chunks.size(left, scale, governed=governed)
        chunks.took(size, size * token_s)
        taken.append(size)
        left -= size
    return taken


ROWS = [
    # behaviour                                  sizes                                            expected
    ("a fast device takes full chunks soon", sizes(400), [32, 64, 128, 128, 48]),
    ("one token is not left alone", sizes(33), [31, 2]),
    ("a prompt of one token is one unit", sizes(1), [1]),
    ("three tokens stay together", sizes(3, scale=0.01), [3]),
    ("the governor's probe is two tokens", sizes(9, scale=0.01), [2, 2, 2, 3]),
    ("a slow device is held to the burst", sizes(100, token_s=0.02, scale=0.25, governed=True)[:4], [32, 5, 5, 5]),
    ("without a duty the bound is larger", sizes(200, token_s=0.02)[:4], [32, 25, 25, 25]),
    ("slices must be possible", sizes(200, token_s=0.002, longest_s=0.005)[:4], [32, 12, 12, 12]),
    ("long slices make no longer units", sizes(300, token_s=0.002, longest_s=0.5)[:4], [32, 50, 50, 50]),
]


@pytest.mark.parametrize(("found", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_sizes(found: list[int], expected: list[int]) -> None:
    assert found == expected


def test_short_rest_of_a_prompt_does_not_shrink_the_next_prompt() -> None:
    chunks = Chunks(128)
    for size in (32, 64, 128):
        chunks.took(size, size * 0.001)
    chunks.took(2, 0.02)

    assert chunks.size(500, 1.0, governed=False) == 128


@given(
    prompt=st.integers(1, 2000),
    full=st.integers(4, 512),
    scale=st.floats(0.01, 1.0),
    token_s=st.floats(1e-6, 1.0),
    governed=st.booleans(),
)
def test_every_prompt_is_cut_into_sizes_that_an_engine_takes(
    prompt: int, full: int, scale: float, token_s: float, governed: bool
) -> None:
    taken = sizes(prompt, full=full, scale=scale, token_s=token_s, governed=governed)

    assert sum(taken) == prompt
    assert max(taken) <= max(full, 2)
    assert prompt == 1 or min(taken) >= 2
    assert taken[0] <= max(PROBE, 3)
    bound_s = GOVERNED_S if governed else FREE_S
    assert all(size <= 3 or size * token_s <= bound_s for size in taken[1:])


def widths(
    steps: int,
    *,
    slots: int = 16,
    fixed_s: float = 0.01,
    each_s: float = 0.001,
    duty: float | None = None,
    scale: float = 1.0,
    longest_s: float | None = None,
) -> list[int]:
    width, taken = Width(slots, longest_s), []
    for _ in range(steps):
        taken.append(size := width.most(scale, duty))
        width.took(size, fixed_s + size * each_s)
    return taken


WIDTHS = [
    # behaviour                                     widths                                              expected
    ("without a duty all step at once", widths(3), [16, 16, 16]),
    ("under one they double to what is asked", widths(6, duty=0.3), [1, 2, 4, 8, 16, 16]),
    ("a slow device stays below the duty's second", widths(5, duty=0.3, each_s=0.1), [1, 2, 2, 2, 2]),
    ("a device too slow for two takes one", widths(3, duty=0.1, fixed_s=1.0), [1, 1, 1]),
    ("duty 0 has the sizes of the least duty", widths(4, duty=0.0, each_s=0.02), [1, 1, 1, 1]),
    ("the governor's factor narrows them", widths(6, duty=0.9, scale=0.25), [1, 2, 4, 4, 4, 4]),
    ("no factor is less than one sequence", widths(2, duty=0.9, scale=0.01), [1, 1]),
    ("slices must be possible", widths(6, each_s=0.01, longest_s=0.01), [1, 2, 3, 3, 3, 3]),
]


@pytest.mark.parametrize(("found", "expected"), [row[1:] for row in WIDTHS], ids=[row[0] for row in WIDTHS])
def test_widths(found: list[int], expected: list[int]) -> None:
    assert found == expected


def test_parts_of_prompts_speak_for_steps_until_there_is_one() -> None:
    width = Width(16)
    width.read(7, 0.04)
    first = width.most(1.0, 0.3)
    width.read(30, 0.3)
    slow = width.most(1.0, 0.1)
    width.took(4, 0.04)
    width.read(100, 5.0)

    assert (first, slow, width.most(1.0, 0.3)) == (14, 10, 8)


@given(
    slots=st.integers(1, 64),
    fixed_s=st.floats(1e-6, 0.5),
    each_s=st.floats(1e-6, 0.5),
    duty=st.floats(0.0, 1.0),
    longest_s=st.none() | st.floats(1e-3, 1.0),
)
def test_no_step_is_longer_than_it_may_be_unless_one_sequence_is(
    slots: int, fixed_s: float, each_s: float, duty: float, longest_s: float | None
) -> None:
    bound_s = max(duty, STARVED_DUTY) if longest_s is None else SLICES * longest_s
    for size in widths(12, slots=slots, fixed_s=fixed_s, each_s=each_s, duty=duty, longest_s=longest_s):
        assert 1 <= size <= slots
        assert size == 1 or fixed_s + size * each_s <= bound_s * 1.000001
