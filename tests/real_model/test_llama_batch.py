"""Several prompts at a time on llama.cpp: the tokens are the same alone, together, under a duty, in slices, sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve import engines, units
from oarbank_llmserve.batch import Batch, Totals
from oarbank_llmserve.engines import Live, PromptFault, Slicing, StepGivenUp, llamacpp, llamacpp_chat
from oarbank_llmserve.engines.llamacpp import LlamaCpp
from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.sampling import PromptSampler
from oarbank_llmserve.units import Units
from oarbank_sdk.duty import Duty
from tests.llmserve.fakes import FakeControl, ListSink

PROMPTS = [
    "The first law of thermodynamics states that",
    "Once upon a time in a small village",
    "The capital of France is",
    "To make bread you need",
    "In computer science, a hash table",
    "The quick brown fox",
    "Water boils at a temperature of",
    "My favourite thing about autumn is " + "and the harbour was quiet that morning " * 40,
]
NEW = 24
GREEDY = PromptSampler(Prompt("x"))


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[LlamaCpp]:
    engine = llamacpp.open_engine(engines.Options(model))
    yield engine
    engine.close()


def asked(texts: Sequence[str] = PROMPTS, temperature: float = 0.0) -> list[Prompt]:
    """Completions of many lengths, so that sequences leave all the time."""
    return [
        Prompt(text, max_tokens=NEW - 5 * (index % 4), temperature=temperature, seed=index)
        for index, text in enumerate(texts)
    ]


def run(
    engine: LlamaCpp, prompts: Sequence[Prompt], duty: float | None = None, longest_s: float | None = None
) -> tuple[list[str], Totals]:
    with Duty(None, device="cpu") as governor:
        governor.set(duty)
        batch = Batch(Job("batch", tuple(prompts), "llamacpp", longest_s=longest_s), engine, governor, FakeControl())
        batch.prepare()
        batch.run(sink := ListSink())
    assert batch.totals.failed == 0
    return [done.text for done in sorted(sink, key=lambda done: done.index)], batch.totals


@pytest.fixture(scope="module")
def alone(engine: LlamaCpp) -> list[str]:
    return [run(engine, [prompt])[0][0] for prompt in asked()]


WAYS = [
    # behaviour          duty  longest_s
    ("together", None, None),
    ("under a duty", 0.5, None),
    ("in slices", None, 0.004),
    ("in slices as short as they get, under a duty", 0.7, 0.0005),
]


@pytest.mark.parametrize(("duty", "longest_s"), [row[1:] for row in WAYS], ids=[row[0] for row in WAYS])
def test_text_is_the_same_however_it_came_about(
    engine: LlamaCpp, alone: list[str], duty: float | None, longest_s: float | None
) -> None:
    texts, totals = run(engine, asked(), duty, longest_s)

    assert texts == alone
    if longest_s is None:
        assert totals.units < sum(NEW - 5 * (index % 4) for index in range(len(PROMPTS)))
    else:
        assert totals.units > 100


def test_sampled_text_does_not_depend_on_the_neighbours(engine: LlamaCpp, alone: list[str]) -> None:
    prompts = asked(temperature=0.8)
    together = run(engine, prompts)[0]

    assert together == [run(engine, [prompt])[0][0] for prompt in prompts]
    assert together != alone


def begun(engine: LlamaCpp, slots: int) -> list[int]:
    """The first token of so many prompts, each in its slot."""
    found = [engine.prefill(slot, engine.tokenize(PROMPTS[slot]), first=True, last=GREEDY) for slot in range(slots)]
    return [token for token in found if token is not None]


def test_sequences_go_on_undisturbed_when_those_between_them_leave(engine: LlamaCpp) -> None:
    engine.reserve(4, 64)
    tokens = begun(engine, 4)
    steps = []
    for _ in range(6):
        tokens = engine.step([Live(slot, token, GREEDY) for slot, token in enumerate(tokens)])
        steps.append([tokens[1], tokens[3]])
    engine.reserve(4, 64)
    tokens = begun(engine, 4)
    engine.drop(0)
    engine.drop(2)
    left = {1: tokens[1], 3: tokens[3]}
    for expected in steps:
        left = dict(zip(left, engine.step([Live(*one, GREEDY) for one in left.items()]), strict=True))
        assert [left[1], left[3]] == expected


@pytest.mark.parametrize("breaths", [0, 1, 7, 29])
def test_step_given_up_leaves_nothing_and_may_be_taken_again(engine: LlamaCpp, breaths: int) -> None:
    engine.reserve(2, 64, sliced=True)
    tokens = begun(engine, 2)
    live = [Live(slot, token, GREEDY) for slot, token in enumerate(tokens)]
    expected = engine.step(live)
    after = engine.step([Live(slot, token, GREEDY) for slot, token in enumerate(expected)])
    engine.reserve(2, 64, sliced=True)
    assert begun(engine, 2) == tokens
    left = iter([True] * breaths)
    with pytest.raises(StepGivenUp):
        engine.step(live, Slicing(1e-9, lambda: next(left, False)))

    assert engine.step(live) == expected
    assert engine.step([Live(slot, token, GREEDY) for slot, token in enumerate(expected)]) == after


def test_prefill_given_up_leaves_nothing_and_may_be_taken_again(engine: LlamaCpp) -> None:
    engine.reserve(1, 512, sliced=True)
    tokens = engine.tokenize(PROMPTS[-1])[:190]
    engine.prefill(0, tokens[:40], first=True, last=None)
    left = iter([True] * 5)
    with pytest.raises(StepGivenUp):
        engine.prefill(0, tokens[40:100], first=False, last=None, slicing=Slicing(1e-9, lambda: next(left, False)))
    engine.prefill(0, tokens[40:100], first=False, last=None)
    found = engine.prefill(0, tokens[100:], first=False, last=GREEDY)
    engine.drop(0)

    engine.prefill(0, tokens[:100], first=True, last=None)
    assert engine.prefill(0, tokens[100:], first=False, last=GREEDY) == found


def test_what_a_breath_raises_does_not_cross_the_library(engine: LlamaCpp) -> None:
    def broken() -> bool:
        raise KeyboardInterrupt

    engine.reserve(1, 64, sliced=True)
    (token,) = begun(engine, 1)
    with pytest.raises(KeyboardInterrupt):
        engine.step([Live(0, token, GREEDY)], Slicing(1e-9, broken))
    assert engine.step([Live(0, token, GREEDY)])


def test_model_that_says_no_number_is_a_fault_of_its_prompt(engine: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.reserve(2, 64)
    tokens = begun(engine, 2)
    drawing = [PromptSampler(Prompt("x", temperature=1.0)) for _ in range(2)]
    live = [Live(slot, token, drawing[slot]) for slot, token in enumerate(tokens)]
    logits = engine._logits

    def broken(count: int) -> Any:
        rows = logits(count).copy()
        rows[1, 7] = float("nan")
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_logits", broken)
        with pytest.raises(PromptFault, match="not a number") as raised:
            engine.step(live)
    assert raised.value.slot == 1
    again = engine.step(live)

    engine.reserve(2, 64)
    begun(engine, 2)
    fresh = [PromptSampler(Prompt("x", temperature=1.0)) for _ in range(2)]
    assert engine.step([Live(slot, token, fresh[slot]) for slot, token in enumerate(tokens)]) == again


def test_load_breathes_between_its_steps(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LOAD_BURST_S", 0.0)
    with Duty(None, device="cpu") as duty:
        load = Units(duty, FakeControl())
        options = engines.Options(model, going=load.going)
        load.run("load", llamacpp.open_engine, options).close()

    assert load.spell.units > 50  # llama.cpp reports a hundred steps


SAYS = [
    # behaviour            messages                                                                  text
    (
        "a question",
        [("user", "Hi")],
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    ),
    (
        "a system's word and an answer",
        [("system", "Be brief."), ("user", "1+1?"), ("assistant", "2"), ("user", "And 2+2?")],
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n"
        "<|im_start|>assistant\n2<|im_end|>\n<|im_start|>user\nAnd 2+2?<|im_end|>\n<|im_start|>assistant\n",
    ),
]


@pytest.mark.parametrize(("messages", "text"), [row[1:] for row in SAYS], ids=[row[0] for row in SAYS])
def test_chat_is_what_the_models_own_template_writes(
    engine: LlamaCpp, messages: list[tuple[str, str]], text: str
) -> None:
    asked = [{"role": role, "content": content} for role, content in messages]

    assert engine.chat(asked) == engine._tokenized(text, begin=False)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        (None, "the model has no chat template: give the prompt as text"),
        ("{{ raise_exception('roles must alternate') }}", "refuses these messages: roles must alternate"),
        ("{{ messages[7].content.x }}", "refuses these messages: .*"),
        ("{% for message in messages %}", "the model's chat template is broken: .*"),
        ("{{ messages.__class__.__mro__ }}", "refuses these messages: .*unsafe.*"),
    ],
)
def test_template_that_does_not_serve_is_a_fault_of_the_prompt(template: str | None, line: str) -> None:
    with pytest.raises(PromptFault, match=line):
        llamacpp_chat.rendered(llamacpp_chat.compiled(template), [{"role": "user", "content": "Hi"}], "<s>", "</s>")


def test_template_gets_what_templates_ask_for() -> None:
    template = (
        "{{ bos_token }}"
        "{% for said in messages %}{% if loop.index > 1 %}{% break %}{% endif %}{{ said | tojson }}{% endfor %}"
        "{% if strftime_now is defined %}a clock{% endif %}{% if add_generation_prompt %}A:{% endif %}"
    )
    messages = [{"role": "user", "content": "ä<"}] * 2
    text = llamacpp_chat.rendered(llamacpp_chat.compiled(template), messages, "<s>", "</s>")

    assert text == '<s>{"role": "user", "content": "ä<"}A:'
