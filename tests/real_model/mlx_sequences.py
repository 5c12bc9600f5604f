"""How the tests drive an MLX engine: prompts in, tokens out, with cuts, company and slices of their choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oarbank_llmserve.engines import Live, Slicing, StepGivenUp


class Greedy:
    """See `oarbank_llmserve.engines.Sampler`."""

    greedy = True
    seed = 0

    def pick(self, logits: Any) -> int:
        raise AssertionError("the engine takes the likeliest token itself")


class Keeping:
    """Takes the second-likeliest token, and keeps what it saw."""

    greedy = False
    seed = 0

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def pick(self, logits: Any) -> int:
        assert (str(logits.dtype), logits.ndim) == ("float32", 1)
        self.seen.append(logits.copy())
        return int(logits.argsort()[-2])


def read(
    engine: Any, slot: int, prompt: str, chunk: int = 32, sampler: Any = None, slicing: Slicing | None = None
) -> int:
    """The first token after the prompt, which goes in chunks; a chunk that is given up is tried again."""
    tokens, sampler = engine.tokenize(prompt), sampler or Greedy()
    token = None
    for at in range(0, len(tokens), chunk):
        end = min(at + chunk, len(tokens))
        last = sampler if end == len(tokens) else None
        token = insist(engine.prefill, slot, tokens[at:end], first=at == 0, last=last, slicing=slicing)
    assert token is not None
    return token


def insist(call: Any, *args: Any, **named: Any) -> Any:
    """Until it is not given up."""
    while True:
        try:
            return call(*args, **named)
        except StepGivenUp:
            continue


def say(
    engine: Any,
    prompts: Sequence[str],
    new: int,
    *,
    chunk: int = 32,
    samplers: Sequence[Any] | None = None,
    slicing: Slicing | None = None,
) -> list[list[int]]:
    """So many tokens of each prompt, all in one batch."""
    samplers = samplers or [Greedy() for _ in prompts]
    said = [[read(engine, slot, prompt, chunk, samplers[slot], slicing)] for slot, prompt in enumerate(prompts)]
    for _ in range(new - 1):
        live = [Live(slot, tokens[-1], samplers[slot]) for slot, tokens in enumerate(said)]
        for tokens, token in zip(said, insist(engine.step, live, slicing), strict=True):
            tokens.append(token)
    for slot in range(len(prompts)):
        engine.drop(slot)
    return said


def say_alone(engine: Any, prompts: Sequence[str], new: int, **named: Any) -> list[list[int]]:
    """The same, one after the other."""
    return [say(engine, [prompt], new, **named)[0] for prompt in prompts]
