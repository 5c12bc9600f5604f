"""The registry and the stand-in: what loads, and text that is the same everywhere."""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_llmserve import engines
from oarbank_llmserve.engines import Live, Slicing, StepGivenUp, stub
from oarbank_llmserve.engines.stub import Stub
from oarbank_llmserve.job import Prompt
from oarbank_llmserve.sampling import PromptSampler

GREEDY = PromptSampler(Prompt("x"))


def say(engine: Stub, prompt: str, tokens: int, chunk: int = 32, sampler: PromptSampler = GREEDY) -> bytes:
    read = engine.tokenize(prompt)
    parts = [read[at : at + chunk] for at in range(0, len(read), chunk)]
    token = None
    for index, part in enumerate(parts):
        token = engine.prefill(0, part, first=index == 0, last=sampler if index == len(parts) - 1 else None)
    text = b""
    for _ in range(tokens):
        assert token is not None
        text += engine.piece(token)
        (token,) = engine.step([Live(0, token, sampler)])
    engine.drop(0)
    return text


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rounds, for tests in which the length of a unit is not the subject."""
    monkeypatch.setattr(stub, "ROUNDS_A_TOKEN", 10)
    monkeypatch.setattr(stub, "ROUNDS_A_PROMPT_TOKEN", 3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("chunk", [1, 2, 7, 32])
def test_stand_in_text_does_not_depend_on_the_cut(chunk: int) -> None:
    assert say(Stub(), "How are you?", 40, chunk) == say(Stub(), "How are you?", 40)


@pytest.mark.usefixtures("quick")
def test_stand_in_text_does_not_depend_on_what_came_before() -> None:
    engine = Stub()
    first = say(engine, "a prompt", 20)
    say(engine, "another", 5)

    assert say(engine, "a prompt", 20) == first
    assert say(engine, "a prompt.", 20) != first


@pytest.mark.usefixtures("quick")
def test_stand_in_splits_characters_and_yet_says_whole_ones() -> None:
    engine, text = Stub(), say(Stub(), "x", 400)
    broken = 0
    for token in range(28):
        try:
            engine.piece(token).decode()
        except UnicodeDecodeError:
            broken += 1

    assert broken == 8
    assert text.rstrip(b"\xc3\xe6\x9d\xf0\x9f\x8c").decode()


@pytest.mark.usefixtures("quick")
@settings(max_examples=30)
@given(st.text(min_size=1, max_size=50))
def test_stand_in_takes_any_text(prompt: str) -> None:
    assert say(Stub(), prompt, 3)


@pytest.mark.usefixtures("quick")
def test_stand_in_text_depends_on_the_seed_only_where_chance_is_asked_for() -> None:
    def said(temperature: float, seed: int) -> bytes:
        return say(Stub(), "x", 40, sampler=PromptSampler(Prompt("x", temperature=temperature, seed=seed)))

    assert said(0.0, 1) == said(0.0, 2) == say(Stub(), "x", 40)
    assert said(1.0, 1) == said(1.0, 1)
    assert len({said(0.0, 1), said(1.0, 1), said(1.0, 2)}) == 3


@pytest.mark.usefixtures("quick")
def test_stand_in_steps_sequences_together_as_alone() -> None:
    engine, texts = Stub(), [b"", b"", b""]
    tokens = [engine.prefill(slot, engine.tokenize("abc"[slot]), first=True, last=GREEDY) for slot in range(3)]
    for _ in range(20):
        texts = [text + engine.piece(token or 0) for text, token in zip(texts, tokens, strict=True)]
        tokens = list(engine.step([Live(slot, tokens[slot] or 0, GREEDY) for slot in range(3)]))

    assert texts == [say(Stub(), prompt, 20) for prompt in "abc"]


@pytest.mark.usefixtures("quick")
def test_stand_in_step_that_was_given_up_can_be_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "ROUNDS_AT_ONCE", 1)
    engine, said = Stub(), []
    token = engine.prefill(0, engine.tokenize("a"), first=True, last=GREEDY)
    for breaths in range(1, 30):
        left = iter([True] * (breaths % 9))
        with pytest.raises(StepGivenUp):
            engine.step([Live(0, token or 0, GREEDY)], Slicing(0.0, lambda left=left: next(left, False)))
        said.append(engine.piece(token or 0))
        (token,) = engine.step([Live(0, token or 0, GREEDY)])

    assert b"".join(said) == say(Stub(), "a", 29)


def test_stand_in_refuses_an_empty_prompt() -> None:
    with pytest.raises(engines.PromptFault):
        Stub().tokenize("")


@pytest.mark.realtime
def test_stand_in_token_costs_cpu_time_that_a_duty_can_be_seen_on() -> None:
    engine = Stub()
    token = engine.prefill(0, engine.tokenize("a"), first=True, last=GREEDY)
    costs_s = []
    for _ in range(20):
        began_s = time.thread_time()
        (token,) = engine.step([Live(0, token or 0, GREEDY)])
        costs_s.append(time.thread_time() - began_s)

    # 4000 of them outlast any window, also free-running: 10 s at 2.5 ms.
    assert min(costs_s) > 0.0025


def test_known_backends_have_the_stand_in_last() -> None:
    assert engines.NAMES == ("mlx", "llamacpp", "stub")
    assert engines.load("stub").device() == "cpu"


@pytest.mark.parametrize(
    ("package", "code", "line"),
    [
        (
            "mlx",
            "raise ModuleNotFoundError(\"No module named 'mlx'\", name='mlx')",
            "backend mlx: No module named 'mlx'. Get it with: pip install \"oarbank-llmserve[mlx]\"",
        ),
        (
            "llama_cpp",
            "raise ModuleNotFoundError(\"No module named 'llama_cpp'\", name='llama_cpp')",
            "backend llamacpp: No module named 'llama_cpp'. Get it with: pip install \"oarbank-llmserve[llamacpp]\"",
        ),
        ("llama_cpp", "raise OSError('libgomp.so.1: cannot open')", "backend llamacpp: libgomp.so.1: cannot open"),
    ],
)
def test_missing_backend_tells_the_end_of_the_cause_and_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, code: str, line: str
) -> None:
    (tmp_path / f"{package}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(engines.NoBackend) as raised:
        engines.load(line.split()[1].rstrip(":"))

    assert str(raised.value) == line
    project = tomllib.loads(Path("packages/llmserve/pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(engines._EXTRAS) == set(project["optional-dependencies"])


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (ImportError("first\n\nlast line\n"), "last line"),
        (OSError("x" * 300), "x" * 200),
        (SystemExit(), "SystemExit"),
    ],
)
def test_end_of_a_cause_is_one_line(cause: BaseException, expected: str) -> None:
    assert engines.end_of(cause) == expected


def test_nothing_heavy_is_imported_before_a_backend_is_asked_for() -> None:
    code = (
        "import sys, oarbank_llmserve.runner, oarbank_llmserve.cli, oarbank_llmserve.doctor\n"
        "print(sorted({'rich', 'numpy', 'llama_cpp', 'mlx', 'mlx_lm', 'pydantic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
