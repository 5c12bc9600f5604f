"""`oarbank-llmserve batch` with files: JSON Lines in, `--out` and going on after an end half-way."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve.cli import main
from oarbank_llmserve.engines import Live, Slicing, stub
from oarbank_llmserve.ledger import key
from oarbank_llmserve.payload import checked
from tests import needs
from tests.llmserve.test_cli import DEADLINE_S, cli, command, until

STUB = ("--backend", "stub", "--max-tokens", "3")
PROMPTS = [{"prompt": f"prompt {n}", "id": n, "max_tokens": 4 + 5 * n} for n in range(6)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.jsonl").write_text("".join(f"{json.dumps(prompt)}\n" for prompt in PROMPTS))
    (tmp_path / "two.txt").write_text("one\ntwo\n")
    (tmp_path / "bad.jsonl").write_text('{"prompt": "a"}\n\n{"prompt": "a", "temprature": 1}\n')
    return tmp_path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_settings_of_a_prompt_are_its_own_and_ids_come_back(folder: Path) -> None:
    ran = cli(folder, "batch", *STUB, "--out", "c.jsonl", "p.jsonl")

    assert (ran.returncode, ran.stdout) == (0, "")
    assert ran.stderr.startswith("c.jsonl: 6 completions\n6 prompts, 99 tokens in ")
    found = lines(folder / "c.jsonl")
    assert [(line["id"], line["index"], line["tokens"]) for line in found] == [(n, n, 4 + 5 * n) for n in range(6)]
    assert not list(folder.glob("*.unfinished"))


def interrupted(folder: Path, done: int) -> str:
    argv = command("batch", *STUB, "--out", "c.jsonl", "p.jsonl")
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    kept = folder / "c.jsonl.unfinished"
    try:
        until(lambda: kept.exists() and kept.read_bytes().count(b"\n") > done, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 130
    return err


@needs.posix("signals")
def test_same_command_goes_on_after_ctrl_c_and_comes_to_the_same_file(folder: Path) -> None:
    assert cli(folder, "batch", *STUB, "--out", "whole.jsonl", "p.jsonl").returncode == 0
    err = interrupted(folder, 2)
    kept = (folder / "c.jsonl.unfinished").read_bytes().count(b"\n") - 1
    ran = cli(folder, "batch", *STUB, "--out", "c.jsonl", "p.jsonl")

    assert f"Ctrl-C: {kept} of 6 prompts were completed; " in err
    assert "kept in c.jsonl.unfinished: the same command again goes on with the others" in err
    assert not (folder / "c.jsonl.unfinished").exists()
    assert ran.stderr.startswith(f"c.jsonl: 6 completions\n{6 - kept} prompts, ")
    assert (folder / "c.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


@needs.posix("signals")
def test_another_command_is_not_mixed_in(folder: Path) -> None:
    interrupted(folder, 1)
    before = (folder / "c.jsonl.unfinished").read_bytes()
    ran = cli(folder, "batch", *STUB, "--temperature", "0.5", "--out", "c.jsonl", "p.jsonl")

    assert ran.returncode == 2
    assert ran.stderr.startswith("--out: must go on with the command that c.jsonl.unfinished is of; ")
    assert (folder / "c.jsonl.unfinished").read_bytes() == before


def test_file_that_is_there_is_never_written_over(folder: Path) -> None:
    (folder / "c.jsonl").write_text("mine")
    ran = cli(folder, "batch", *STUB, "--out", "c.jsonl", "two.txt")

    assert (ran.returncode, ran.stderr) == (
        2, "--out: must be a new file; found c.jsonl. Name another, or remove it\n"
    )  # fmt: skip
    assert (folder / "c.jsonl").read_text() == "mine"


def test_everything_done_before_the_file_was_written_needs_no_model(folder: Path) -> None:
    assert cli(folder, "batch", *STUB, "--out", "c.jsonl", "two.txt").returncode == 0
    job = checked("batch", {"prompts": ["one", "two"], "max_tokens": 3, "backend": "stub", "model": "given"})
    head = json.dumps({"unfinished": 1, "key": key(job, "stub", None, {"llmserve": "0.0.0"})})
    (folder / "d.jsonl.unfinished").write_text(f"{head}\n{(folder / 'c.jsonl').read_text()}")
    ran = cli(folder, "batch", *STUB, "--out", "d.jsonl", "two.txt")

    assert (ran.returncode, ran.stderr) == (0, "d.jsonl: 2 completions\n")
    assert (folder / "d.jsonl").read_bytes() == (folder / "c.jsonl").read_bytes()


def test_torn_beginning_of_a_kept_file_is_begun_again(folder: Path) -> None:
    (folder / "c.jsonl.unfinished").write_text('{"unfin')

    assert cli(folder, "batch", *STUB, "--out", "c.jsonl", "two.txt").returncode == 0
    assert len(lines(folder / "c.jsonl")) == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bad.jsonl",), "bad.jsonl: line 3: /temprature: must be a key of a prompt"),
        (("--out", ".", "two.txt"), "--out: must be a file; found a folder"),
        (("--out", "absent/c.jsonl", "two.txt"), "--out: must lie in a folder that is there"),
        (("--longest-ms", "0", "two.txt"), "--longest-ms: must be a number from 1 to 60000; found 0"),
        (("--temperature", "nan", "two.txt"), "--temperature: must be a number from 0 to 10; found nan"),
        (("--top-k", "-1", "two.txt"), "--top-k"),
        (("--seed", "1.5", "two.txt"), "--seed: must be a whole number from 0 to 999999999; found 1.5"),
        (("--memory-gb", "8GB", "two.txt"), "--memory-gb: must be a number from 0.01 to 1024; found 8GB"),
    ],
)
def test_wrong_input_is_one_line(folder: Path, arguments: tuple[str, ...], says: str) -> None:
    ran = cli(folder, "batch", *STUB, *arguments)

    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.removeprefix("oarbank-llmserve batch: ").startswith(says)


def test_failed_prompt_is_in_the_file_and_in_the_status(folder: Path) -> None:
    (folder / "f.jsonl").write_text('"a"\n""\n')
    ran = cli(folder, "batch", *STUB, "--out", "c.jsonl", "f.jsonl")

    assert ran.returncode == 1
    assert "prompt 2: the prompt is empty. Skipped" in ran.stderr
    assert [line["finish"] for line in lines(folder / "c.jsonl")] == ["length", "error"]


@needs.posix("a limit of file sizes")
def test_disk_that_fills_up_keeps_what_is_done(folder: Path) -> None:
    argv = command("batch", *STUB, "--out", "c.jsonl", "p.jsonl")
    argv[2] = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700)); " + argv[2]
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S)

    assert ran.returncode == 3
    assert "--out: must be a file that can be written; File too large" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert (folder / "c.jsonl.unfinished").read_bytes().count(b"\n") >= 2
    assert not (folder / "c.jsonl").exists()


def test_chat_goes_through_the_models_template(folder: Path) -> None:
    plain = cli(folder, "batch", *STUB, "two.txt")
    chat = cli(folder, "batch", *STUB, "--chat", "two.txt")

    assert (plain.returncode, chat.returncode) == (0, 0)
    assert plain.stdout != chat.stdout


def test_slices_change_no_text(folder: Path) -> None:
    free = cli(folder, "batch", *STUB, "two.txt")
    cut = cli(folder, "batch", *STUB, "--longest-ms", "1", "--duty", "0.9", "two.txt")

    assert free.stdout == cut.stdout
    assert (free.returncode, cut.returncode) == (0, 0)


def test_ctrl_c_comes_between_units_and_never_inside_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inside a unit a library may be calling back, and an exception there would be lost."""
    ended: list[int] = []

    def step(engine: stub.Stub, live: list[Live], slicing: Slicing | None = None) -> list[int]:
        signal.raise_signal(signal.SIGINT)
        ended.append(sum(range(1000)))  # Python code, in which the signal would be heard
        return [0 for _ in live]

    monkeypatch.setattr(stub.Stub, "step", step)
    monkeypatch.chdir(folder)
    before = signal.getsignal(signal.SIGINT)

    assert main(["batch", *STUB, "two.txt"]) == 130
    assert len(ended) == 1
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr().err.startswith("Ctrl-C: 0 of 2 prompts were completed; ")
