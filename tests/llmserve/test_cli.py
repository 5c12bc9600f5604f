"""The command line for people: one line for wrong input, the right exit status, and figures at the end."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from oarbank_llmserve.batch import Totals
from oarbank_llmserve.cli import main
from oarbank_llmserve.engines import Live, Slicing, stub
from oarbank_llmserve.result import Spent
from oarbank_llmserve.screen import Screen, closing, live
from oarbank_llmserve.sink import Completion
from tests import needs

DEADLINE_S = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from oarbank_llmserve.cli import main; sys.exit(main())", *arguments]


def cli(folder: Path, *arguments: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(
        command(*arguments), cwd=folder, input=stdin, capture_output=True, check=False, timeout=DEADLINE_S,
        env={**os.environ, **env},
    )  # fmt: skip
    return subprocess.CompletedProcess(ran.args, ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def until(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait while the process lives."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not what():
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Prompts, and things that are no prompts and no models."""
    (tmp_path / "prompts.txt").write_text("one\n\n  \ntwo\r\n", encoding="utf-8")
    (tmp_path / "bom.txt").write_bytes(b"\xef\xbb\xbfone\n")
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "text.gguf").write_text("I am a text file, not a model.\n")
    (tmp_path / "empty.gguf").write_bytes(b"")
    (tmp_path / "bom-latin.txt").write_bytes(b"\xef\xbb\xbfcaf\xe9\n")
    (tmp_path / "model.bin").write_bytes(b"GGUF")
    (tmp_path / "model.gguf").write_bytes(b"GGUF, and no more of it")
    (tmp_path / "mlx-model").mkdir()
    (tmp_path / "link").symlink_to("absent")
    return tmp_path


STUB = ("--backend", "stub", "--max-tokens", "3")
WRONG: list[tuple[str, tuple[str, ...], int, str]] = [
    # behaviour                     arguments                                        status  what the line says
    ("no command", (), 2, "required"),
    ("no prompts file", ("batch", *STUB), 2, "required: FILE"),
    ("a prompts file that is not there", ("batch", *STUB, "absent.txt"), 2, "or - for stdin"),
    ("a folder of prompts", ("batch", *STUB, "mlx-model"), 2, "mlx-model: must be a file that can be read"),
    ("an empty prompts file", ("batch", *STUB, "empty.txt"), 2, "found none. Write one prompt on each line"),
    ("empty stdin", ("batch", *STUB, "-"), 2, "stdin: must hold a prompt a line"),
    ("prompts in Latin 1", ("batch", *STUB, "latin.txt"), 2, "latin.txt: must be UTF-8 text; byte 3 is not (0xe9)."),
    ("prompts in Latin 1 behind a mark", ("batch", *STUB, "bom-latin.txt"), 2, "byte 6 is not (0xe9)"),
    ("duty 1.2", ("batch", *STUB, "--duty", "1.2", "prompts.txt"), 2, "--duty: must be a number above 0 and up to 1"),
    ("duty 0", ("batch", *STUB, "--duty", "0", "prompts.txt"), 2, "--duty"),
    ("duty nan", ("batch", *STUB, "--duty", "nan", "prompts.txt"), 2, "--duty"),
    ("duty in words", ("batch", *STUB, "--duty", "a third", "prompts.txt"), 2, "found a third"),
    ("max-tokens 0", ("batch", *STUB[:2], "--max-tokens", "0", "prompts.txt"), 2, "--max-tokens: must be a"),
    ("max-tokens 1.5", ("batch", "--backend", "stub", "--max-tokens", "1.5", "prompts.txt"), 2, "--max-tokens"),
    ("threads 0", ("batch", *STUB, "--threads", "0", "prompts.txt"), 2, "--threads"),
    ("an unknown backend", ("batch", "--backend", "vllm", "prompts.txt"), 2, "vllm"),
    ("an empty stop", ("batch", *STUB, "--stop", "", "prompts.txt"), 2, "--stop: must not be empty. Name the text"),
    ("too many stops", ("batch", *STUB, *["--stop", "x"] * 17, "prompts.txt"), 2, "--stop: must hold 0 to 16 texts"),
    ("a number of ten thousand digits", ("batch", "--threads", "9" * 10_000, "prompts.txt"), 2, "--threads: must be a"),
    ("an unknown command", ("frob",), 2, "'frob'"),
    ("two files of prompts", ("batch", *STUB, "prompts.txt", "bom.txt"), 2, "bom.txt"),
    ("events in a folder's place", ("batch", *STUB, "--events", "mlx-model", "prompts.txt"), 2, "Name a file in it"),
    ("a model for the stand-in", ("batch", *STUB, "--model", "model.gguf", "prompts.txt"), 2, "must be left out with"),

    ("events of a name too long", ("batch", *STUB, "--events", "e" * 300, "prompts.txt"), 2, "--events: must be"),
    ("a model of a name too long", ("batch", "--model", "m" * 300, "prompts.txt"), 2, "--model: must be a model that"),
    ("output behind a link to nothing", ("batch", *STUB, "--out", "link", "prompts.txt"), 2, "--out: must be a new"),
    ("events nowhere", ("batch", *STUB, "--events", "absent/e.ndjson", "prompts.txt"), 2, "--events: must lie in"),
    ("no model", ("batch", "prompts.txt"), 2, "or try --backend stub"),
    ("a missing model", ("batch", "--model", "absent.gguf", "prompts.txt"), 2, "found nothing at absent.gguf. Name"),
    ("text called a model", ("batch", "--model", "text.gguf", "prompts.txt"), 2, "its first bytes are b'I am'. Fetch"),
    ("an empty model", ("batch", "--model", "empty.gguf", "prompts.txt"), 2, "must be a GGUF file; it is empty"),
    ("a model of another kind", ("batch", "--model", "model.bin", "prompts.txt"), 2, "found a file with another"),
    ("a file for mlx", ("batch", "--backend", "mlx", "--model", "model.gguf", "prompts.txt"), 2, "Leave the backend"),
    ("a folder for llamacpp", ("batch", "--backend", "llamacpp", "--model", "mlx-model", "bom.txt"), 2, "Name the"),
    ("a missing backend", ("batch", "--model", "mlx-model", "prompts.txt"), 3, "backend mlx: No module named 'mlx'"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "status", "line"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_input_is_told_and_nothing_is_printed(
    folder: Path, arguments: tuple[str, ...], status: int, line: str
) -> None:
    ran = cli(folder, *arguments)

    assert ran.returncode == status
    (said,) = ran.stderr.splitlines()
    assert line in said
    assert ran.stdout == ""


def test_help_is_for_people_and_names_the_exit_statuses(folder: Path) -> None:
    for arguments in (("--help",), ("batch", "--help")):
        words = " ".join(cli(folder, *arguments).stdout.split())
        assert "Complete each line of a file with a local language model" in words
        assert re.findall(r"\b\d+\b", words.partition("Exit status:")[2]) == ["0", "1", "2", "3", "130"]
        assert "`" not in words


def test_version_is_the_installed_packages(folder: Path) -> None:
    assert cli(folder, "--version").stdout == f"oarbank-llmserve {metadata.version('oarbank-llmserve')}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("batch", *STUB, "prompts.txt"), "stdout: must take every completion; No space left on device at prompt 1. "),
        (("doctor",), "stdout: must take what is printed; No space left on device"),
        (("doctor", "--json"), "stdout: must take what is printed; No space left on device"),
    ],
)
def test_output_that_takes_nothing_is_one_line_and_status_3(
    folder: Path, arguments: tuple[str, ...], line: str, unbuffered: str
) -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            command(*arguments), cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=DEADLINE_S, env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip

    assert ran.returncode == 3
    (said,) = ran.stderr.splitlines()
    assert said.startswith(line)


@needs.posix("a limit of file sizes")
def test_disk_that_fills_up_leaves_whole_completions_and_their_number(folder: Path) -> None:
    """A limit on the size of files stands for the disk; SIGXFSZ is ignored by Python itself."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); "
    argv = command("batch", *STUB, "many.txt")
    argv[2] = code + argv[2]
    (folder / "many.txt").write_text("a prompt\n" * 40)
    with (folder / "out.txt").open("wb") as out:
        ran = subprocess.run(
            argv, cwd=folder, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=DEADLINE_S
        )

    assert ran.returncode == 3
    (said,) = ran.stderr.splitlines()
    whole = int(re.search(r"Printed whole before it: (\d+)\. ", said)[1])  # type: ignore[index]
    text = (folder / "out.txt").read_bytes().decode(errors="replace")
    assert f"at prompt {whole + 1}." in said
    assert f"[{whole}] " in text
    assert text.count("\n[") + 1 in (whole, whole + 1)


def test_completions_are_printed_with_their_number_and_figures_at_the_end(folder: Path) -> None:
    ran = cli(folder, "batch", *STUB, "--duty", "0.9", "prompts.txt")

    assert ran.returncode == 0
    assert [line[:4] for line in ran.stdout.splitlines() if not line.startswith("    ")] == ["[1] ", "[2] "]
    assert ran.stderr.startswith("2 prompts, 6 tokens in ")
    assert "tokens/s without the idle" in ran.stderr
    assert "duty asked 0.9, held 0." in ran.stderr


def test_prompts_come_from_stdin_and_may_begin_with_a_mark(folder: Path) -> None:
    one = cli(folder, "batch", *STUB, "bom.txt").stdout

    assert cli(folder, "batch", *STUB, "-", stdin=b"one").stdout == one
    assert one == cli(folder, "batch", *STUB, "prompts.txt").stdout.partition("[2]")[0]


def test_console_that_does_not_know_a_character_gets_another(folder: Path) -> None:
    ran = cli(folder, "batch", "--backend", "stub", "--max-tokens", "60", "prompts.txt", PYTHONIOENCODING="ascii")

    assert ran.returncode == 0
    assert "?" in ran.stdout


def test_stop_string_ends_a_completion(folder: Path) -> None:
    ran = cli(folder, "batch", "--backend", "stub", "--stop", " ", "prompts.txt")

    assert ran.returncode == 0
    assert all(" " not in line[4:] for line in ran.stdout.splitlines())


def test_reports_go_to_the_events_file(folder: Path) -> None:
    assert cli(folder, "batch", *STUB[:2], "--max-tokens", "60", "--events", "e.ndjson", "prompts.txt").returncode == 0
    assert '"gpu_duty"' in (folder / "e.ndjson").read_text()


def test_skipped_prompt_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(2, "stub", "cpu")
    screen.put(Completion(1, "", 0, 9, "error", "the model's context is full"))
    screen.put(Completion(2, "one\n\ntwo", 2, 9, "end"))
    screen.close()

    seen = capsys.readouterr()
    assert seen.err == "prompt 2: the model's context is full. Skipped; the others run on.\n"
    assert seen.out == "[3] one\n\n    two\n"


def test_closing_line_has_tokens_rate_and_the_duty_asked_and_held() -> None:
    line = closing(Totals(prompts=2, failed=1, tokens=10, busy_s=1.0, longest_unit_s=0.0123), Spent(4.0, 2.0), 0.25)

    assert line == (
        "2 prompts, 1 failed, 10 tokens in 4.0 s: 5.0 tokens/s without the idle of 2.0 s; "
        "duty asked 0.25, held 0.250; longest unit 12 ms"
    )


@pytest.mark.parametrize(
    ("spent", "line"),
    [
        (Spent(4.0, 2.0), "10 tokens, 5.0/s, held 0.25"),
        (Spent(0.0), "10 tokens"),
        (Spent(2.0, 2.0), "10 tokens, held 0.50"),
    ],
)
def test_bars_line_has_the_rate_and_the_share_held(spent: Spent, line: str) -> None:
    assert live(10, spent, 1.0) == line


def test_completions_are_shown_in_the_order_of_the_prompts_whatever_comes_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen(4, "stub", "cpu")
    for index in (1, 3, 0):
        screen.put(Completion(index, f"text {index}", 1, 1, "end"))
    before = capsys.readouterr().out
    screen.close()

    assert before == "[1] text 0\n[2] text 1\n"
    assert capsys.readouterr().out == "[4] text 3\n"  # its turn never came, and it is completed


@pytest.mark.realtime
@needs.posix("signals")
def test_ctrl_c_keeps_what_is_printed_and_says_so(folder: Path) -> None:
    (folder / "many.txt").write_text("a prompt\n" * 400)
    argv = command("batch", "--backend", "stub", "--max-tokens", "20", "many.txt")
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(argv, cwd=folder, stdout=out, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: (folder / "out.txt").stat().st_size > 0, process)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()

    printed = sum(line.startswith("[") for line in (folder / "out.txt").read_text().splitlines())
    assert process.returncode == 130
    assert f"Ctrl-C: {printed} of 400 prompts were completed; " in err
    assert "To be able to go on another time, give --out FILE" in err
    assert "Traceback" not in err


def test_ctrl_c_counts_the_tokens_that_were_made_and_writes_the_last_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = 0

    def step(engine: stub.Stub, live: list[Live], slicing: Slicing | None = None) -> list[int]:
        nonlocal steps
        steps += 1
        if steps == 18:
            time.sleep(0.3)  # the governor reports no span shorter than 0.25 s
            raise KeyboardInterrupt
        return [0 for _ in live]

    monkeypatch.setattr(stub.Stub, "step", step)
    monkeypatch.chdir(folder)
    (folder / "two.jsonl").write_text('"one"\n{"prompt": "two", "max_tokens": 5}\n')
    assert main(["batch", "--backend", "stub", "--max-tokens", "40", "--events", "e.ndjson", "two.jsonl"]) == 130

    seen = capsys.readouterr()
    first, last = seen.err.splitlines()
    assert seen.out.startswith("[2] ")
    assert first.startswith(
        "Ctrl-C: 1 of 2 prompts were completed; 1 were not finished, and their 18 tokens are left out. "
    )
    assert last.startswith("1 prompts, 23 tokens in ")
    (report,) = [json.loads(line) for line in (folder / "e.ndjson").read_text().splitlines()]
    assert report["name"] == "gpu_duty"


@pytest.mark.realtime
@needs.posix("signals")
def test_ctrl_c_in_the_idle_ends_it(folder: Path) -> None:
    argv = command("batch", "--backend", "stub", "--duty", "0.0001", "prompts.txt")
    process = subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(2.0)  # in the idle; earlier still, the load is ended instead
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()

    assert process.returncode == 130
    assert err.startswith("Ctrl-C: ")
    assert "Traceback" not in err


def test_reader_that_has_seen_enough_is_no_traceback(folder: Path) -> None:
    argv = shlex.join(command("batch", *STUB, "prompts.txt")) + " | true"
    ran = subprocess.run(argv, shell=True, cwd=folder, capture_output=True, text=True, check=False)

    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


@needs.posix("a terminal as POSIX has it")
def test_terminal_gets_a_bar_and_clean_text(folder: Path) -> None:
    """On a pseudo terminal; the bar goes away, the completions stay."""
    import pty  # there is none on Windows

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command("batch", "--backend", "stub", "--max-tokens", "30", "prompts.txt"),
        cwd=folder, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    seen = b""
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(leader)

    assert process.wait(DEADLINE_S) == 0
    assert b"stub on cpu" in seen
    assert re.search(rb"[0-9]+ tokens, [0-9.]+/s, held [0-9.]+", seen)
    assert b"[1] " in seen
    assert b"[2] " in seen
    assert b"2 prompts, 60 tokens" in seen
