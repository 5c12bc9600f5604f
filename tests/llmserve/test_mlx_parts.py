"""How much of a prompt goes at once: little before anything is known, then what one layer reads in a slice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.engines.mlx_parts import FILL, FIRST, Parts

LONGEST_S = 0.020


def test_first_part_is_small_and_parts_at_most_double() -> None:
    parts, sizes = Parts(), []
    for _ in range(5):
        sizes.append(parts.size(1000, LONGEST_S))
        parts.took(sizes[-1], sizes[-1] * 1e-6)

    assert sizes == [FIRST, 16, 32, 64, 128]


SIZES = [
    # seconds of a layer over 8 tokens   left   size
    (0.008, 100, 16),  # 1 ms a token: 16 of them are 16 ms
    (0.010, 100, 8),
    (0.080, 100, 1),
    (8.000, 100, 1),  # not even one fits, and less than one there is not
    (0.008, 3, 3),
    (0.000, 100, 16),  # a clock that stood still
]


@pytest.mark.parametrize(("took_s", "left", "size"), SIZES)
def test_part_is_what_one_layer_reads_in_a_slice(took_s: float, left: int, size: int) -> None:
    parts = Parts()
    parts.took(8, took_s)

    assert parts.size(left, LONGEST_S) == size


def test_longer_time_counts_at_once_and_shorter_ones_by_and_by() -> None:
    parts = Parts()
    parts.took(8, 0.008)
    parts.took(8, 0.032)
    assert parts.size(100, LONGEST_S) == 4
    parts.took(8, 0.008)
    assert parts.size(100, LONGEST_S) == 4
    for _ in range(40):
        parts.took(8, 0.008)
    assert [parts.size(100, LONGEST_S) for _ in range(3)] == [8, 8, 8]


@pytest.mark.parametrize(("end_s", "size"), [(0.005, 16), (0.0001, 16), (0.032, 4)])
def test_end_of_a_prompt_says_only_what_a_part_takes_at_least(end_s: float, size: int) -> None:
    parts = Parts()
    parts.took(8, 0.008)
    parts.took(1, end_s)

    assert parts.size(100, LONGEST_S) == size


def test_parts_that_shrank_can_grow_again() -> None:
    parts = Parts()
    parts.took(8, 8.0)
    for _ in range(200):
        size = parts.size(100, LONGEST_S)
        parts.took(size, size * 0.0002)

    assert parts.size(100, LONGEST_S) == 64


@given(token_s=st.floats(1e-7, 1.0), longest_s=st.floats(0.001, 1.0), left=st.integers(1, 4096))
def test_a_part_fits_wherever_one_token_does(token_s: float, longest_s: float, left: int) -> None:
    parts = Parts()
    for _ in range(20):
        size = parts.size(left, longest_s)
        assert 1 <= size <= left
        parts.took(size, size * token_s)
    size = parts.size(left, longest_s)

    assert size == 1 or size * token_s <= FILL * longest_s * 1.000001
