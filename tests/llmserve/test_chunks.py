"""Sizes of prefill units: all of the prompt, never one token alone, never a burst that was avoidable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.chunks import FREE_S, GOVERNED_S, PROBE, Chunks


def sizes(
    prompt: int, *, full: int = 128, scale: float = 1.0, token_s: float = 0.001, governed: bool = False
) -> list[int]:
    chunks, left, taken = Chunks(full), prompt, []
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
