"""Commands that are started with a closed stream, or pointed at a file without an end: a line, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oarbank_sdk.whole_file import read_whole

POSIX = pytest.mark.skipif(os.name != "posix", reason="only POSIX shells close a stream that way")
BIN = Path(sys.executable).parent
JOURNAL = "tests/agent_check/journals/budget-without-any-metric-the-level-holds.jsonl"
PRINTS = [
    ("oarbank-sdk", "schema"),
    ("oarbank-agent-check", "sources"),
    ("oarbank-agent-check", "replay", JOURNAL),
    ("oarbank-llmserve", "doctor"),
    ("oarbank-llmserve", "batch", "--backend", "stub", "--max-tokens", "1", "VERSION"),
]
READS = [
    (("oarbank-sdk", "validate", "spec-envelope-1"), "-", "/dev/zero"),
    (("oarbank-agent-check", "replay"), "-", "/dev/zero"),
    (("oarbank-agent-check", "run", "packages/llmserve", "--duty", "1", "--payload"), "", "@/dev/zero"),
    (("oarbank-llmserve", "batch", "--backend", "stub"), "-", "/dev/zero"),
]


def shell(words: tuple[str, ...], closed: str = "") -> subprocess.CompletedProcess[str]:
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", str(BIN / words[0]), *words[1:]]
    return subprocess.run(argv, capture_output=True, text=True, timeout=100, check=False)


@POSIX
@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_closed_output_is_told_as_one_that_takes_nothing(words: tuple[str, ...]) -> None:
    ran = shell(words, ">&-")

    assert ran.returncode == 3
    (said,) = ran.stderr.splitlines()
    assert "Bad file descriptor" in said


@POSIX
@pytest.mark.parametrize("words", PRINTS, ids=" ".join)
def test_closed_stderr_takes_nothing_from_the_output(words: tuple[str, ...]) -> None:
    closed, open_ = shell(words, "2>&-"), shell(words)

    assert (closed.returncode, closed.stdout) == (open_.returncode, open_.stdout)
    assert closed.returncode == 0
    assert closed.stdout


@POSIX
def test_what_is_written_to_a_closed_stderr_never_lands_in_the_next_file(tmp_path: Path) -> None:
    out = tmp_path / "c.jsonl"

    ran = shell((*PRINTS[-1], "--out", str(out)), "2>&-")

    assert ran.returncode == 0
    assert len(out.read_bytes().splitlines()) == 1


@POSIX
@pytest.mark.parametrize(("words", "stdin", "endless"), READS, ids=[" ".join(row[0]) for row in READS])
def test_closed_input_and_endless_file_are_wrong_use(words: tuple[str, ...], stdin: str, endless: str) -> None:
    runs = [shell((*words, endless)), *([shell((*words, stdin), "<&-")] if stdin else [])]

    assert [ran.returncode for ran in runs] == [2] * len(runs)
    said = [ran.stderr.splitlines() for ran in runs]
    assert all(len(lines) == 1 for lines in said)
    assert "more than 256 MiB" in said[0][0]
    assert all("closed" in lines[0] for lines in said[1:])


@POSIX
@pytest.mark.parametrize(
    "words",
    [("oarbank-sdk", "validate", "spec-envelope-1"), ("oarbank-sdk", "new", "runner", "--name", "x"),
     ("oarbank-llmserve", "module"), ("oarbank-agent-check", "record", "--pid", "SELF", "--out")],
    ids=" ".join,
)  # fmt: skip
def test_name_that_is_no_utf_8_can_be_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    name = tmp_path / "x\udcff"
    if words[1] == "validate":
        name.write_text("{}")

    ran = shell((*(str(os.getpid()) if word == "SELF" else word for word in words), str(name)))

    assert "Traceback" not in ran.stderr
    assert r"x\udcff" in ran.stdout


@pytest.mark.parametrize(("size", "taken"), [(0, True), (3, True), (4, False)])
def test_file_is_read_whole_up_to_its_bound(tmp_path: Path, size: int, taken: bool) -> None:
    (tmp_path / "f").write_bytes(b"x" * size)

    if taken:
        assert read_whole(tmp_path / "f", 3) == b"x" * size
    else:
        with pytest.raises(OSError, match="more than 0 MiB"):
            read_whole(tmp_path / "f", 3)
