"""What Windows lacks ends in an answer and not in a traceback; the names that it lacks are taken away for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oarbank_agent_check.jobs.coordinator_process import Pipes
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.owner_command import OwnerCommand
from oarbank_agent_check.sources.drm_read import DrmReader
from tests.agent_check.wait import eventually
from tests.leftovers import running_below


@pytest.fixture(autouse=True)
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "killpg", "mkfifo"):
        monkeypatch.delattr(os, name, raising=False)


def test_coordinator_is_a_fault_of_this_machine(tmp_path: Path) -> None:
    with pytest.raises(HostFault, match="a coordinator is started on Linux or macOS; found Windows"):
        Pipes(tmp_path)


def test_reader_of_linux_says_why_it_cannot_read(tmp_path: Path) -> None:
    hindrance = DrmReader(str(tmp_path / "proc"), str(tmp_path / "sys")).hindrance()

    assert hindrance is not None
    assert "this needs Linux with /proc" in hindrance.reason


def test_command_that_runs_on_is_ended_without_a_process_group(tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text("import sys, time\nprint(7, flush=True)\ntime.sleep(600)\n", encoding="utf-8")
    hanging = OwnerCommand(f"{sys.executable} -I -S {tmp_path / 'hang.py'}")
    assert hanging.ask()
    assert hanging.answer() == (False, None)

    assert not hanging.ask()
    hanging.close()

    assert hanging.fault == "it was not done in time"
    assert running_below(tmp_path) == []


def test_command_that_is_done_gives_its_number() -> None:
    command = OwnerCommand("echo 7")
    assert command.ask()
    found: list[float | None] = []

    def done() -> bool:
        over, value = command.answer()
        found.append(value)
        return over

    eventually(done, "the command is done")
    assert found[-1] == 7.0
