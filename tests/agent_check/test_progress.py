"""Reading a program's counter: a number, or a fault that says why there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oarbank_agent_check.progress import CommandProgress, FileProgress, progress
from tests import needs


@pytest.mark.parametrize(
    ("content", "value"),
    [("000000000012\n", 12.0), ("3.25", 3.25), ("0", 0.0), ("1e6\n", 1e6)],
)
def test_file_holds_the_number(tmp_path: Path, content: str, value: float) -> None:
    (tmp_path / "frames").write_text(content)

    found = progress(f"@{tmp_path}/frames").read()

    assert (found.value, found.fault) == (value, None)


@pytest.mark.parametrize("content", ["", "twelve", "nan", "inf", "-1", "1 2", "\x00\xff", "[" * 5000])
def test_file_without_a_number_is_a_fault(tmp_path: Path, content: str) -> None:
    (tmp_path / "frames").write_bytes(content.encode("latin-1"))

    found = FileProgress(tmp_path / "frames").read()

    assert found.value is None
    assert "must hold one number, 0 or more; found " in (found.fault or "")
    assert "\n" not in (found.fault or "")


@needs.posix("named pipes")
def test_what_is_no_file_is_a_fault(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("gone", ".", "pipe", "a\0b"):
        found = FileProgress(tmp_path / name).read()

        assert found.value is None
        assert found.fault


@pytest.mark.parametrize(
    ("code", "value", "fault"),
    [
        ("print(41 + 1)", 42.0, None),
        ("print('much')", None, "must print a number"),
        ("print(-3)", None, "must print a number"),
        ("raise SystemExit(3)", None, "it ended with status 3"),
    ],
)
def test_command_prints_the_number(code: str, value: float | None, fault: str | None) -> None:
    found = CommandProgress(f'{sys.executable} -I -S -c "{code}"').read()

    assert found.value == value
    assert found.fault is None if fault is None else fault in (found.fault or "")


def test_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarbank_agent_check.progress.COMMAND_LIMIT_S", 0.1)

    found = CommandProgress("sleep 600").read()

    assert found.value is None
    assert "must answer within" in (found.fault or "")
