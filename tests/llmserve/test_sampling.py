"""Samplers on logits made by hand: bounds, chances, and texts that a seed gives again."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.engines import PromptFault
from oarbank_llmserve.job import Prompt
from oarbank_llmserve.sampling import PromptSampler

CHANCES = [0.15, 0.5, 0.05, 0.3]  # tokens 1, 3, 0, 2, the likeliest first
LOGITS = numpy.log(numpy.array(CHANCES, dtype=numpy.float32))


def picked(logits: Any, count: int = 300, **asked: Any) -> list[int]:
    sampler = PromptSampler(Prompt("x", **asked))
    return [sampler.pick(logits) for _ in range(count)]


BOUNDS = [
    # behaviour                                    asked for                                        tokens
    ("nothing: the likeliest", {}, {1}),
    ("temperature 0 beats every bound", {"temperature": 0.0, "top_k": 3, "top_p": 0.9}, {1}),
    ("a temperature too cold for a second", {"temperature": 1e-4}, {1}),
    ("all of them", {"temperature": 1.0}, {0, 1, 2, 3}),
    ("top_k 1 is the likeliest", {"temperature": 5.0, "top_k": 1}, {1}),
    ("top_k 2", {"temperature": 5.0, "top_k": 2}, {1, 3}),
    ("top_k above the vocabulary", {"temperature": 5.0, "top_k": 100}, {0, 1, 2, 3}),
    ("top_p 0: the likeliest stays", {"temperature": 5.0, "top_p": 0.0}, {1}),
    ("top_p inside the first", {"temperature": 5.0, "top_p": 0.4}, {1}),
    ("top_p inside the second", {"temperature": 5.0, "top_p": 0.6}, {1, 3}),
    ("top_p is of what top_k left", {"temperature": 5.0, "top_k": 2, "top_p": 0.6}, {1}),
    ("min_p of half the likeliest", {"temperature": 5.0, "min_p": 0.5}, {1, 3}),
    ("min_p 1", {"temperature": 5.0, "min_p": 1.0}, {1}),
    ("top_p, then min_p", {"temperature": 5.0, "top_p": 0.9, "min_p": 0.5}, {1, 3}),
]


@pytest.mark.parametrize(("asked", "tokens"), [row[1:] for row in BOUNDS], ids=[row[0] for row in BOUNDS])
def test_bounds_say_what_may_come_out(asked: dict[str, Any], tokens: set[int]) -> None:
    assert set(picked(LOGITS, **asked)) == tokens


def test_chances_are_the_models_at_temperature_1_and_flatter_above() -> None:
    found = picked(LOGITS, 20_000, temperature=1.0, seed=1)
    flat = picked(LOGITS, 20_000, temperature=100.0, seed=1)

    assert [found.count(token) / 20_000 for token in range(4)] == pytest.approx(CHANCES, abs=0.02)
    assert [flat.count(token) / 20_000 for token in range(4)] == pytest.approx([0.25] * 4, abs=0.02)


def test_seed_gives_the_same_tokens_again_and_another_seed_others() -> None:
    first = picked(LOGITS, 50, temperature=1.0, seed=7)

    assert picked(LOGITS, 50, temperature=1.0, seed=7) == first
    assert picked(LOGITS, 50, temperature=1.0, seed=8) != first


def test_seed_draws_what_it_always_drew() -> None:
    """Texts are promised for a seed: another generator, or another order of draws, is another promise."""
    assert picked(LOGITS, 12, temperature=1.0, seed=0) == [3, 1, 0, 3, 0, 1, 1, 3, 1, 3, 1, 3]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_output_that_is_no_number_is_a_fault(temperature: float) -> None:
    with pytest.raises(PromptFault, match="not a number"):
        picked(numpy.full(4, numpy.nan, dtype=numpy.float32), temperature=temperature)


def test_logits_are_left_alone() -> None:
    logits = LOGITS.copy()
    picked(logits, 5, temperature=0.7, top_k=2, top_p=0.5, min_p=0.1)

    assert (logits == LOGITS).all()


@given(
    seed=st.integers(0, 2**48),
    size=st.sampled_from([5, 3000, 50_000]),
    temperature=st.floats(0.01, 5.0),
    top_k=st.sampled_from([0, 1, 2, 40, 2500]),
    top_p=st.floats(0.0, 1.0),
    min_p=st.floats(0.0, 1.0),
)
def test_token_is_one_that_the_bounds_leave(
    seed: int, size: int, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    logits = numpy.random.default_rng(seed).normal(0.0, 2.0, size).astype(numpy.float32)
    (token,) = picked(logits, 1, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed)

    order = numpy.argsort(-logits.astype(float), kind="stable")[: top_k or size].tolist()
    chances = numpy.exp(logits[order].astype(float) - float(logits.max()))
    before = (numpy.cumsum(chances) - chances) / chances.sum()
    place = order.index(token)
    assert place == 0 or before[place] <= top_p + 1e-9
    assert chances[place] >= min_p * (1 - 1e-6)
