"""The command line and the doctor with a real model."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.llmserve.test_cli import cli
from tests.llmserve.test_doctor import doctor


@pytest.mark.realtime
def test_completions_are_printed_and_the_closing_figures(tmp_path: Path, model: Path) -> None:
    (tmp_path / "prompts.txt").write_text("The capital of France is\nWater boils at a temperature of\n")
    arguments = ("batch", "--model", str(model), "--duty", "0.3", "--max-tokens", "12", "prompts.txt")
    ran = cli(tmp_path, *arguments)

    assert ran.returncode == 0
    first, second = re.split(r"^\[2\] ", ran.stdout, flags=re.MULTILINE)
    assert first.startswith("[1]  Paris")
    assert second.strip()
    (line,) = ran.stderr.splitlines()  # and not a word of llama.cpp
    found = re.fullmatch(
        r"2 prompts, 24 tokens in [\d.]+ s: ([\d.]+) tokens/s without the idle of ([\d.]+) s; "
        r"duty asked 0\.3, held ([\d.]+); longest unit \d+ ms",
        line,
    )
    assert found, line
    assert float(found[1]) > 0
    assert float(found[2]) > 0
    assert 0 < float(found[3]) <= 0.4


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "text.gguf",
            "--model text.gguf: must be a GGUF file; its first bytes are b'I am'. Fetch it again, or name another",
        ),
        ("empty.gguf", "--model empty.gguf: must be a GGUF file; it is empty. Fetch it again, or name another"),
        ("half.gguf", "--model half.gguf: llama.cpp does not load it"),
    ],
)
def test_file_that_is_no_model_is_one_line(tmp_path: Path, data: Path, name: str, line: str) -> None:
    ran = cli(tmp_path, "batch", "--model", str(data / "models" / name), "-", stdin=b"a\n")

    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", line + "\n")


def test_skipped_prompt_gives_status_1_and_the_others_are_printed(tmp_path: Path, model: Path) -> None:
    prompts = b"word " * 9000 + b"\nThe capital of France is\n"
    ran = cli(tmp_path, "batch", "--model", str(model), "--max-tokens", "2", "-", stdin=prompts)

    assert ran.returncode == 1
    assert re.match(r"prompt 1: the prompt has \d+ tokens, and the model takes 8192 at most", ran.stderr)
    assert ran.stdout.startswith("[2]  Paris")


def test_doctor_lists_the_backends_that_load(tmp_path: Path) -> None:
    answer = json.loads(doctor(tmp_path, "--json").stdout.splitlines()[-1])

    assert answer["attrs"]["backends"] == ["mlx", "llamacpp", "stub"]
    assert re.fullmatch(r"mlx \S+, mlx-lm \S+, (cpu|gpu)", answer["checks"][0]["detail"])
    assert re.fullmatch(r"llama-cpp-python \S+, (cpu|gpu)", answer["checks"][1]["detail"])
