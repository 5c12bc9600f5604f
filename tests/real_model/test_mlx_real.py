"""MLX with the real model: what it says, that it says it in any company, and that its idle is idle."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve import engines
from oarbank_llmserve.engines import Live, Slicing, llamacpp, mlx
from oarbank_llmserve.engines.mlx import Mlx
from oarbank_llmserve.text import TextStream
from tests.real_model.mlx_sequences import Greedy, read, say, say_alone

PROMPTS = [
    "The capital of France is",
    "Hi",
    "Once upon a time in a small village there",
    "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n",
]
NEW = 8
TEXTS = [
    "plain text",
    "naïve 東京 🌊",
    "1234567890",
    " \n\t  x",
    "<|im_start|>user\nHi<|im_end|>",
    "def f(x):\n    return x**2",
]


@pytest.fixture(scope="module")
def engine(mlx_model: Path) -> Iterator[Mlx]:
    engine = mlx.open_engine(engines.Options(mlx_model))
    engine.reserve(len(PROMPTS), 256)
    yield engine
    engine.close()


def text_of(engine: Mlx, tokens: list[int]) -> str:
    stream = TextStream()
    return "".join(stream.feed(engine.piece(token)) for token in tokens) + stream.end()


def test_tokens_are_those_of_llama_cpp(engine: Mlx, model: Path) -> None:
    other = llamacpp.open_engine(engines.Options(model))
    conversation = [{"role": "user", "content": "How are you?"}, {"role": "assistant", "content": "Well."}]
    try:
        for text in TEXTS:
            assert engine.tokenize(text) == other.tokenize(text), text
        assert engine.chat(conversation) == other.chat(conversation)
        (end,) = engine.tokenize("<|im_end|>")
        assert engine.is_end(end)
        assert [engine.piece(token) for token in range(17, 3000)] == [other.piece(token) for token in range(17, 3000)]
    finally:
        other.close()


def test_text_is_the_same_in_any_company_and_the_one_that_mlx_lm_writes(engine: Mlx) -> None:
    together = say(engine, PROMPTS, NEW)
    batch_generate: Any = import_module("mlx_lm.generate").batch_generate
    read_prompts = [engine.tokenize(prompt) for prompt in PROMPTS]
    theirs = batch_generate(
        engine._model, engine._tokenizer, read_prompts, max_tokens=NEW, return_token_ids=True
    ).token_ids

    assert say_alone(engine, PROMPTS[:2], NEW, chunk=3) == together[:2]
    assert say(engine, PROMPTS[:2], NEW, slicing=Slicing(0.02, lambda: True)) == together[:2]
    for ours, their in zip(together, theirs, strict=True):
        assert ours[: len(their)] == their  # theirs stops at the end of the text
    assert text_of(engine, together[0]).startswith(" Paris")


@pytest.mark.realtime
def test_idle_after_a_unit_is_idle(engine: Mlx) -> None:
    token = read(engine, 0, "Hi")
    used_s = []
    for _ in range(5):
        (token,) = engine.step([Live(0, token, Greedy())])
        before_s = time.process_time()
        time.sleep(0.05)
        used_s.append(time.process_time() - before_s)
    engine.drop(0)

    assert sorted(used_s)[2] < 0.01  # a token that is computed ahead takes 0.03 s of it and more (measured)


@pytest.mark.realtime
def test_slices_are_about_as_long_as_asked(engine: Mlx) -> None:
    longest_s, slices_s = 0.05, []
    began_s = time.perf_counter()

    def breathe() -> bool:
        nonlocal began_s
        slices_s.append(time.perf_counter() - began_s)
        began_s = time.perf_counter()
        return True

    token = read(engine, 0, PROMPTS[2] * 6, slicing=Slicing(longest_s, breathe))
    for _ in range(4):
        began_s = time.perf_counter()
        (token,) = engine.step([Live(0, token, Greedy())], Slicing(longest_s, breathe))
    engine.drop(0)

    assert len(slices_s) > 20  # some 60 tokens, each 0.05 s through all layers
    assert sorted(slices_s)[len(slices_s) // 2] < 2 * longest_s
