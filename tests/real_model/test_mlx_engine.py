"""The MLX engine on a model of two layers: the same tokens in any company, any cut, any slices; nothing left behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve import engines
from oarbank_llmserve.engines import Live, PromptFault, Slicing, StepGivenUp, mlx
from oarbank_llmserve.engines.mlx import Mlx
from tests.real_model.mlx_model import write_tiny
from tests.real_model.mlx_sequences import Greedy, Keeping, insist, read, say, say_alone

PROMPTS = ["a", "The harbour was quiet that morning.", "naïve 東京 🌊", "x" * 70, "Hi there"]
AT_ONCE = Slicing(1e-9, lambda: True)  # a breath after every layer


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mlx]:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path_factory.mktemp("mlx") / "tiny")))
    assert engine.reserve(8, 1024) == engines.Room(8, 1024)
    yield engine
    engine.close()
    engine.close()  # again: nothing


@pytest.fixture(scope="module")
def expected(engine: Mlx) -> list[list[int]]:
    return say_alone(engine, PROMPTS, 16)


def test_model_of_the_tests_says_different_things(expected: list[list[int]]) -> None:
    assert len({tuple(tokens) for tokens in expected}) == len(PROMPTS)
    assert all(len(set(tokens)) > 6 for tokens in expected)


@pytest.mark.parametrize("chunk", [1, 2, 5, 32, 1000])
def test_tokens_do_not_depend_on_the_company_or_the_cut(engine: Mlx, expected: list[list[int]], chunk: int) -> None:
    assert say(engine, PROMPTS, 16, chunk=chunk) == expected


@pytest.mark.parametrize("chunk", [3, 1000])
def test_tokens_do_not_depend_on_slices(engine: Mlx, expected: list[list[int]], chunk: int) -> None:
    assert say(engine, PROMPTS, 16, chunk=chunk, slicing=AT_ONCE) == expected
    assert say_alone(engine, PROMPTS[:2], 16, chunk=chunk, slicing=AT_ONCE) == expected[:2]


@pytest.mark.parametrize("seed", range(4))
def test_tokens_do_not_depend_on_who_comes_goes_or_pauses(engine: Mlx, expected: list[list[int]], seed: int) -> None:
    chance = random.Random(seed)
    waiting, live, said = list(range(len(PROMPTS))), {}, {}
    while waiting or live:
        if waiting and chance.random() < 0.3:
            prompt, slot = waiting.pop(0), next(slot for slot in range(8) if slot not in live)
            live[slot] = prompt
            said[prompt] = [read(engine, slot, PROMPTS[prompt], chunk=chance.choice([2, 9, 64]))]
        steps = [slot for slot in live if chance.random() < 0.8]
        chance.shuffle(steps)
        if steps:
            tokens = engine.step([Live(slot, said[live[slot]][-1], Greedy()) for slot in steps])
            for slot, token in zip(steps, tokens, strict=True):
                said[live[slot]].append(token)
        for slot in [slot for slot, prompt in live.items() if len(said[prompt]) == 16]:
            engine.drop(slot)
            del live[slot]

    assert [said[prompt] for prompt in range(len(PROMPTS))] == expected


def test_sampler_sees_the_same_logits_alone_and_in_a_batch(engine: Mlx) -> None:
    alone = [Keeping() for _ in PROMPTS]
    for sampler, prompt in zip(alone, PROMPTS, strict=True):
        say(engine, [prompt], 4, samplers=[sampler])
    batched = [Keeping() if slot != 1 else Greedy() for slot in range(len(PROMPTS))]
    say(engine, PROMPTS, 4, samplers=batched)

    for one, other in zip(alone, batched, strict=True):
        if isinstance(other, Keeping):
            assert len(one.seen) == len(other.seen) == 4
            assert all((a == b).all() for a, b in zip(one.seen, other.seen, strict=True))


class Breath:
    """Says no at the n-th breath, once."""

    def __init__(self, no_at: int) -> None:
        self.breaths = 0
        self._no_at = no_at

    def __call__(self) -> bool:
        self.breaths += 1
        return self.breaths != self._no_at


@pytest.mark.parametrize("no_at", [1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_step_that_is_given_up_leaves_nothing(engine: Mlx, expected: list[list[int]], no_at: int) -> None:
    breath = Breath(no_at)

    assert say(engine, PROMPTS[:3], 16, chunk=16, slicing=Slicing(1e-9, breath)) == expected[:3]
    assert breath.breaths > no_at


def test_giving_up_is_told(engine: Mlx) -> None:
    token = read(engine, 0, "a")
    with pytest.raises(StepGivenUp):
        engine.step([Live(0, token, Greedy())], Slicing(1e-9, lambda: False))
    with pytest.raises(StepGivenUp):
        engine.prefill(1, engine.tokenize("abc"), first=True, last=None, slicing=Slicing(1e-9, lambda: False))
    engine.drop(0)
    engine.drop(1)


def test_sampler_draws_nothing_in_a_step_that_is_given_up(engine: Mlx) -> None:
    sampler = Keeping()
    token = read(engine, 0, "a", sampler=sampler)
    insist(engine.step, [Live(0, token, sampler)], Slicing(1e-9, Breath(2)))
    engine.drop(0)

    assert len(sampler.seen) == 2


def test_row_that_is_no_number_is_that_prompts_fault_and_no_others(engine: Mlx, expected: list[list[int]]) -> None:
    said = [[read(engine, slot, prompt)] for slot, prompt in enumerate(PROMPTS[:3])]
    poisoned = engine._rows.alone(1)[0]
    poisoned.keys = poisoned.keys * float("nan")
    live = [Live(slot, tokens[-1], Greedy()) for slot, tokens in enumerate(said)]
    with pytest.raises(PromptFault, match="not a number") as raised:
        engine.step(live)
    engine.drop(1)
    for _ in range(15):
        live = [Live(slot, said[slot][-1], Greedy()) for slot in (0, 2)]
        for one, token in zip(live, engine.step(live), strict=True):
            said[one.slot].append(token)
    engine.drop(0)
    engine.drop(2)

    assert raised.value.slot == 1
    assert [said[0], said[2]] == [expected[0], expected[2]]


def test_full_context_is_a_fault_of_the_prompt(tmp_path: Path) -> None:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m", train=20)))
    assert engine.reserve(4, 100) == engines.Room(4, 20)
    token = read(engine, 0, "x" * 19)
    (token,) = engine.step([Live(0, token, Greedy())])
    other = read(engine, 1, "abc")
    with pytest.raises(PromptFault, match="the model's context is full") as raised:
        engine.step([Live(1, other, Greedy()), Live(0, token, Greedy())])
    assert raised.value.slot == 0
    with pytest.raises(PromptFault, match="the model's context is full"):
        engine.prefill(2, list(range(21)), first=True, last=None)
    assert len(engine.step([Live(1, other, Greedy())])) == 1  # the next has room
    engine.close()


def test_layers_whose_cache_cannot_be_cut_back_batch_and_are_not_sliced(tmp_path: Path) -> None:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m", window=8)))
    engine.reserve(8, 256)
    breath = Breath(-1)
    alone = say_alone(engine, PROMPTS, 12)

    assert say(engine, PROMPTS, 12, slicing=Slicing(1e-9, breath)) == alone
    assert breath.breaths == 0
    with pytest.raises(PromptFault, match="a draw fails"):
        say(engine, ["abc"], 4, samplers=[Failing()])
    with pytest.raises(PromptFault, match="lost in a step that failed"):
        engine.step([Live(0, 1, Greedy())])
    engine.close()


class Failing(Greedy):
    greedy = False

    def pick(self, logits: Any) -> int:
        raise PromptFault("a draw fails")


def test_reserve_again_forgets_the_sequences(engine: Mlx, expected: list[list[int]]) -> None:
    token = read(engine, 0, "a")
    engine.reserve(8, 1024, sliced=True)
    with pytest.raises(PromptFault):
        engine.step([Live(0, token, Greedy())])
    assert say(engine, PROMPTS[:2], 16) == expected[:2]


@pytest.mark.parametrize("text", ["plain", "naïve 東京 🌊", " \n\t\r", "<think>", "a<|im_end|>b"])
def test_tokens_say_the_text_they_were_made_of(engine: Mlx, text: str) -> None:
    said = b"".join(engine.piece(token) for token in engine.tokenize(text)).decode()

    assert said == text.replace("<|im_end|>", "")  # control tokens have no bytes
    assert engine.piece(263) == b""  # a token that the tokenizer does not have


def test_ends_are_those_of_the_generation_config(engine: Mlx) -> None:
    assert [token for token in range(264) if engine.is_end(token)] == [256, 257]


def test_prompt_without_tokens_is_a_fault_of_the_prompt(engine: Mlx) -> None:
    with pytest.raises(PromptFault, match="the prompt has no tokens"):
        engine.tokenize("")


def test_token_that_the_model_does_not_have_is_a_fault_of_the_prompt(tmp_path: Path) -> None:
    engine = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m", vocabulary=259)))
    assert engine.tokenize("a<|im_start|>")
    with pytest.raises(PromptFault, match=r"^the prompt has token 259, and the model knows 259 tokens$"):
        engine.tokenize("a<think>b")
    engine.close()


def test_chat_goes_through_the_template(engine: Mlx, tmp_path: Path) -> None:
    said = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert engine.chat([{"role": "user", "content": "Hi"}]) == engine.tokenize(said)
    with pytest.raises(PromptFault, match=r"^the model's chat template refuses: unknown role$"):
        engine.chat([{"role": "captain", "content": "Hi"}])
    bare = mlx.open_engine(engines.Options(write_tiny(tmp_path / "m", template=None)))
    with pytest.raises(PromptFault, match=r"^the model has no chat template; give the prompt as text$"):
        bare.chat([{"role": "user", "content": "Hi"}])
    bare.close()


@pytest.mark.parametrize("no_at", [1, 2, 3])
def test_load_ends_between_two_layers(tmp_path: Path, no_at: int) -> None:
    going = Breath(no_at)
    with pytest.raises(engines.LoadStopped):
        mlx.open_engine(engines.Options(write_tiny(tmp_path / "m"), going=going))
    assert going.breaths == no_at  # not once more after the no


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def do(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return do


@pytest.mark.parametrize(
    "break_it",
    [
        edit("config.json", '"model_type": "llama"', '"model_type": "unheard_of"'),
        edit("config.json", '"hidden_size": 32', '"hidden_size": 64'),
        edit("config.json", '"hidden_size": 32', '"hidden_size": "wide"'),
        edit("config.json", '"hidden_size": 32', '"hidden_size": 4000000000000000000'),
        edit("config.json", '"num_hidden_layers": 2', '"num_hidden_layers": 3'),
        edit("tokenizer.json", '"type": "BPE"', '"type": "BPX"'),
        edit("tokenizer.json", '"model"', '"nodel"'),
    ],
)
def test_model_that_the_library_does_not_open_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], break_it: Callable[[Path], object]
) -> None:
    break_it(write_tiny(tmp_path / "m"))
    capfd.readouterr()
    with pytest.raises(engines.BadModel) as raised:
        mlx.open_engine(engines.Options(tmp_path / "m"))
    assert str(raised.value).startswith("model m: ")
    assert len(str(raised.value).splitlines()) == 1
    assert capfd.readouterr() == ("", "")


def test_no_model_is_one_line() -> None:
    with pytest.raises(engines.BadModel, match=r"^model: must be the folder of an MLX model; nothing found$"):
        mlx.open_engine(engines.Options(None))
