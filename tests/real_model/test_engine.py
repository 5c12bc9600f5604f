"""The llama.cpp engine alone: the same text however a prompt is cut, nothing locked, nothing leaked to a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve import engines
from oarbank_llmserve.engines import Live, Room, llamacpp, llamacpp_library
from oarbank_llmserve.engines.llamacpp import LlamaCpp
from oarbank_llmserve.job import Prompt
from oarbank_llmserve.sampling import PromptSampler
from oarbank_llmserve.text import TextStream

PROMPT = "The history of the town begins with a small harbour, a church and three roads. " * 8


GREEDY = PromptSampler(Prompt("x"))


@pytest.fixture(scope="module")
def engine(model: Path) -> Iterator[LlamaCpp]:
    """Room for 512 tokens."""
    engine = llamacpp.open_engine(engines.Options(model))
    engine.reserve(1, 512)
    yield engine
    engine.close()


def greedy(engine: LlamaCpp, prompt: str, new: int, chunk: int) -> list[int]:
    tokens = engine.tokenize(prompt)
    token = None
    for at in range(0, len(tokens), chunk):
        end = min(at + chunk, len(tokens))
        token = engine.prefill(0, tokens[at:end], first=at == 0, last=GREEDY if end == len(tokens) else None)
    found = []
    for _ in range(new):
        assert token is not None
        found.append(token)
        (token,) = engine.step([Live(0, token, GREEDY)])
    engine.drop(0)
    return found


@pytest.mark.parametrize("chunk", [2, 3, 16, 100])
def test_text_does_not_depend_on_how_the_prompt_was_cut(engine: LlamaCpp, chunk: int) -> None:
    prompt = PROMPT[: len(PROMPT) - 3] if len(engine.tokenize(PROMPT)) % chunk == 1 else PROMPT

    assert greedy(engine, prompt, 24, chunk) == greedy(engine, prompt, 24, engine.full_chunk)


def logits(model: Path, tokens: list[int], *, chunk: int, threads: int, neighbours: int) -> list[bytes]:
    """What the model says after a long prompt and after three steps, with so many others in the step."""
    engine = llamacpp.open_engine(engines.Options(model))
    try:
        engine.set_threads(threads)
        engine.reserve(1 + neighbours, 700)
        for at in range(0, len(tokens), chunk):
            token = engine.prefill(0, tokens[at : at + chunk], first=at == 0, last=GREEDY) or 0
        said = [engine._logits(1)[0].tobytes()]
        others = [engine.prefill(slot, tokens[:9], first=True, last=GREEDY) or 0 for slot in range(1, 1 + neighbours)]
        for _ in range(3):
            live = [Live(slot, one, GREEDY) for slot, one in enumerate([token, *others])]
            token, *others = engine.step(live)
            said.append(engine._logits(1)[0].tobytes())
        return said
    finally:
        engine.close()


def test_logits_of_a_long_prompt_are_the_same_to_the_bit_however_it_was_read(model: Path, engine: LlamaCpp) -> None:
    # Longer than 512 tokens, in parts above and below 64: flash attention changes its ways there.
    tokens = (engine.tokenize(PROMPT) * 8)[:600]
    plain = logits(model, tokens, chunk=128, threads=1, neighbours=0)

    assert logits(model, tokens, chunk=50, threads=2, neighbours=2) == plain


def test_model_that_takes_no_flash_attention_runs_without_it(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, asked = llamacpp.lib.llama_init_from_model, []

    def refusing(handle: object, params: Any) -> object:
        asked.append(params.flash_attn_type)
        flash = params.flash_attn_type == llamacpp.lib.LLAMA_FLASH_ATTN_TYPE_ENABLED
        return None if flash else make(handle, params)

    monkeypatch.setattr(llamacpp.lib, "llama_init_from_model", refusing)
    engine = llamacpp.open_engine(engines.Options(model))
    try:
        assert engine.reserve(2, 64) == Room(2, 256)
    finally:
        engine.close()
    assert asked == [llamacpp.lib.LLAMA_FLASH_ATTN_TYPE_ENABLED, llamacpp.lib.LLAMA_FLASH_ATTN_TYPE_DISABLED]


def test_text_does_not_depend_on_the_threads_or_on_what_came_before(engine: LlamaCpp) -> None:
    expected = greedy(engine, "Once upon a time", 16, 128)
    engine.set_threads(2)
    again = greedy(engine, "Once upon a time", 16, 128)
    engine.set_threads(None)

    assert again == expected


def test_pieces_make_the_text_that_a_model_would_say(engine: LlamaCpp) -> None:
    stream = TextStream()
    tokens = greedy(engine, "The capital of France is", 4, 128)

    assert "Paris" in "".join(stream.feed(engine.piece(token)) for token in tokens) + stream.end()


@pytest.mark.parametrize("text", ["plain", "naïve 東京 🌊", " \n\t", "<|im_start|>user\nHi<|im_end|>"])
def test_tokens_say_the_text_they_were_made_of(engine: LlamaCpp, text: str) -> None:
    said = b"".join(engine.piece(token) for token in engine.tokenize(text)).decode()

    assert said == re.sub(r"<\|im_\w+\|>", "", text)  # control tokens have no bytes


def test_end_of_generation_is_known(engine: LlamaCpp) -> None:
    (end,) = engine.tokenize("<|im_end|>")

    assert engine.is_end(end)
    assert not engine.is_end(engine.tokenize("plain")[0])


def test_prompt_without_tokens_is_a_fault_of_the_prompt(engine: LlamaCpp) -> None:
    with pytest.raises(engines.PromptFault):
        engine.tokenize("")


def test_prompt_that_fills_the_context_gives_one_token(model: Path) -> None:
    engine = llamacpp.open_engine(engines.Options(model))
    room = engine.reserve(1, 256).tokens
    tokens = engine.tokenize("word " * 400)[:room]
    try:
        for at in range(0, room, 128):
            last = GREEDY if at + 128 >= room else None
            token = engine.prefill(0, tokens[at : at + 128], first=at == 0, last=last)
        assert token is not None
        with pytest.raises(engines.PromptFault):
            engine.step([Live(0, token, GREEDY)])
    finally:
        engine.close()


def test_full_context_is_a_fault_of_its_prompt(model: Path) -> None:
    engine = llamacpp.open_engine(engines.Options(model))
    room = engine.reserve(2, 256).tokens
    try:
        with pytest.raises(engines.PromptFault) as raised:
            greedy(engine, "a b c d", room + 8, 128)
        assert raised.value.slot == 0
        assert greedy(engine, "The capital of France is", 2, 128)  # the next prompt has one
    finally:
        engine.close()


ROOMS = [
    # behaviour                                memory_gb    asked for       given
    ("as asked for", None, (3, 300), (3, 512)),
    ("no longer than the model takes", None, (1, 10_000), (1, 8192)),
    ("no wider than is of use", None, (64, 256), (16, 256)),
    ("fewer sequences first", 0.2, (8, 1000), (2, 1024)),
    ("then shorter ones", 0.2, (2, 8000), (1, 1792)),
]


@pytest.mark.parametrize(("memory_gb", "asked", "given"), [row[1:] for row in ROOMS], ids=[row[0] for row in ROOMS])
def test_room_is_what_the_memory_and_the_model_allow(
    model: Path, memory_gb: float | None, asked: tuple[int, int], given: tuple[int, int]
) -> None:
    engine = llamacpp.open_engine(engines.Options(model, memory_gb=memory_gb))
    try:
        assert engine.reserve(*asked) == Room(*given)
    finally:
        engine.close()


@pytest.mark.parametrize("memory_gb", [0.05, 0.12])
def test_grant_that_does_not_hold_the_model_is_said(model: Path, memory_gb: float) -> None:
    with pytest.raises(engines.OutOfMemory, match="GB are granted"):
        llamacpp.open_engine(engines.Options(model, memory_gb=memory_gb)).reserve(1, 256)


def test_load_ends_between_two_steps(model: Path) -> None:
    asked = 0

    def going() -> bool:
        nonlocal asked
        asked += 1
        return asked < 5

    with pytest.raises(engines.LoadStopped):
        llamacpp.open_engine(engines.Options(model, going=going))
    assert asked == 5  # not once more after the no


def test_no_memory_is_locked(engine: LlamaCpp) -> None:
    status = Path("/proc/self/status")
    if status.exists():  # elsewhere nobody tells
        assert re.search(r"VmLck:\s+(\d+) kB", status.read_text(encoding="utf-8")).group(1) == "0"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("granted", "asked", "most"), [(1, 8, 1), (1, None, 1), (64, None, llamacpp.default_threads())]
)
def test_threads_never_pass_what_was_granted(model: Path, granted: int, asked: int | None, most: int) -> None:
    engine = llamacpp.open_engine(engines.Options(model, threads=granted))
    try:
        engine.set_threads(asked)
        assert engine._threads_now() == most
    finally:
        engine.close()
        engine.close()  # again: nothing


def test_field_that_the_binding_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="knows no use_mlock"):
        llamacpp_library.with_fields(llamacpp_library.lib.llama_model_default_params(), use_mlock=False)


def test_device_is_what_the_build_offers() -> None:
    assert llamacpp.device() == ("gpu" if llamacpp_library.lib.llama_supports_gpu_offload() else "cpu")
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", llamacpp.versions()["llama-cpp-python"])
