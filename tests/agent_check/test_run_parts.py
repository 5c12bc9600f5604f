"""The parts of `run`, one by one: outcomes, words, the agent's clock, its state, reports, a pressure's answer."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check import job_view
from oarbank_agent_check.agent_clock import AgentClock, ClockMark
from oarbank_agent_check.agent_state import Remembered, StateFolder, default_folder
from oarbank_agent_check.duty_reports import LONGEST_LINE, DutyReports
from oarbank_agent_check.inputs import Policy
from oarbank_agent_check.job_view import JobView
from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.jobs.live import LiveText
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_agent_check.outcome import Held, JobEnd, outcome
from oarbank_agent_check.owner_command import OwnerCommand, parse
from oarbank_agent_check.result_folder import ResultFolder
from oarbank_agent_check.state import State
from tests import needs
from tests.agent_check.wait import eventually

RESULT = json.dumps({"schema": "standin/result@1", "module_version": "1.2.3", "payload": {"n": 1}}).encode()
FAILURE = json.dumps({"reason": "oom", "detail": "all of it\x1b[31m\nat once"}).encode()


def end(code: int | None = 0, **named: Any) -> JobEnd:
    nothing: dict[str, Any] = {"stopped": None, "result": None, "failure": None, "missing": (), "stderr": ""}
    return JobEnd(code, **{**nothing, **named})


ENDS = [
    ("a result", end(0, result=RESULT), None, 0, "done"),
    ("a result of a job that was stopped too late", end(0, result=RESULT, stopped="Ctrl-C"), None, 0, "done"),
    ("a result and another status", end(1, result=RESULT), None, 1, "failed: it ended with status 1 and left no"),
    ("a failure", end(1, failure=FAILURE), None, 1, "failed: oom: all of it [31m at once; it ended with status 1"),
    ("a failure nobody can read", end(1, failure=b"\xff"), None, 1, "failed: its failure.json cannot be used: "),
    ("a stop", end(75, stopped="Ctrl-C"), None, 1, "stopped: Ctrl-C; it ended with status 75"),
    ("killed", end(None, stopped="timeout_s"), None, 1, "stopped: timeout_s; it did not end by itself"),
    ("every sample could be read", end(0, result=RESULT), Held(3, 0, 0.3), 0, "done"),
    ("one sample could", end(0, result=RESULT), Held(3, 2, 0.3), 0, "done"),
    ("no sample could", end(0, result=RESULT), Held(3, 3, None), 3, "done; could not tell whether it held its duty"),
    ("no sample could, and it failed", end(1), Held(1, 1, None), 3, "failed: it ended with status 1"),
    ("there was no sample", end(0, result=RESULT), Held(0, 0, None), 0, "done"),
]


@pytest.mark.parametrize(("why", "ended", "held", "code", "said"), ENDS, ids=[row[0] for row in ENDS])
def test_outcome(why: str, ended: JobEnd, held: Held | None, code: int, said: str) -> None:
    found = outcome(ended, held)

    assert found.exit == code
    assert found.line.startswith(said)
    assert (found.result is not None) == (ended.result is not None and ended.code == 0)


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(-64, 255))
def test_whatever_a_runner_leaves_is_one_line(result: bytes, failure: bytes, code: int) -> None:
    found = outcome(end(code, result=result, failure=failure, stderr=failure.decode("latin-1")), None)

    assert found.exit in (0, 1)
    assert found.line.isprintable()


VIEWS = [
    ({}, "0:12  asked 0.300  reported 0.299  measured 0.301  strikes 0  phase batch"),
    (
        {"measured": None, "reported": None},
        "0:12  asked 0.300  reported -  measured -  strikes 0  phase batch",
    ),
    ({"phase": None}, "0:12  asked 0.300  reported 0.299  measured 0.301  strikes 0  phase -"),
    ({"unread": True}, "0:12  asked 0.300  reported 0.299  measured unknown  strikes 0  phase batch"),
    ({"paused": True, "strikes": 1}, "0:12  asked pause  reported 0.299  measured 0.301  strikes 1  phase batch"),
    ({"stopping": True, "paused": True}, "0:12  asked stop  reported 0.299  measured 0.301  strikes 0  phase batch"),
    ({"asked": None, "running_s": 3723.9}, "1:02:03  asked -  reported 0.299  measured 0.301  strikes 0  phase batch"),
]


@pytest.mark.parametrize(("changes", "line"), VIEWS)
def test_view_in_words(changes: dict[str, Any], line: str) -> None:
    usual: dict[str, Any] = {"running_s": 12.3, "asked": 0.3, "reported": 0.299, "measured": 0.301, "phase": "batch"}
    flags: dict[str, Any] = {"paused": False, "stopping": False, "unread": False, "strikes": 0}
    view = JobView(**{**usual, **flags, **changes})

    assert job_view.line(view) == line
    head, row = job_view.table(view).split("\n")
    words = line.split()[2::2]
    assert row.split() == [line.split()[0], *words]
    assert len(row) <= len(head) + len("batch")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_live_text_takes_its_lines_away_and_is_nothing_where_there_is_no_terminal() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        live = LiveText(stream)
        live("head\nrow 1")
        live("one")
        live.clear()
        live.clear()

    up, away = "\x1b[1A\x1b[K", "\r\x1b[K"
    assert terminal.getvalue() == f"{away}head\nrow 1{away}{up}one{away}"
    assert pipe.getvalue() == ""


ANSWERS = [
    (b"0.5\n", 0.5), (b" 2 ", 2.0), (b"0", 0.0), (b"1e-3", 0.001),
    (b"", None), (b"nan", None), (b"inf", None), (b"-0.1", None), (b"1 2", None), (b"0,5", None), (b"\xff", None),
    (b"9" * 5000, None),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "value"), ANSWERS)
def test_pressure_is_one_number_or_none(printed: bytes, value: float | None) -> None:
    assert parse(printed) == value


@pytest.mark.realtime
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize(
    ("command", "value", "fault"),
    [
        ("echo 1.5", 1.5, None),
        ("echo 1.5; exit 3", None, "it ended with status 3"),
        ("echo 1.5 >&2", None, "it must print a number of at least 0; found b''"),
        ("yes | head -c 100000", None, "it must print a number of at least 0; found b'y"),
        ("no-such-command-at-all", None, "it ended with status 127"),
    ],
)
def test_owner_command(command: str, value: float | None, fault: str | None) -> None:
    pressure = OwnerCommand(command)
    assert pressure.ask()
    answers: list[float | None] = []

    def done() -> bool:
        ended, said = pressure.answer()
        answers[:] = [said] if ended else []
        return ended

    eventually(done, "an answer")
    assert answers == [value]
    assert (pressure.fault or "").startswith(fault or "")
    assert (pressure.fault is None) == (fault is None)


@pytest.mark.realtime
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
def test_owner_command_that_is_not_done_is_ended_with_its_children(tmp_path: Path) -> None:
    pressure = OwnerCommand(f"sleep 600 & echo $! > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/child; wait")
    assert pressure.ask()
    eventually((tmp_path / "child").exists, "the command's child")
    assert pressure.answer() == (False, None)

    assert not pressure.ask()  # late
    assert pressure.fault == "it was not done in time"
    pressure.close()
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    eventually(lambda: not child.exists() or b") Z " in child.read_bytes(), "its child is gone")


def test_clock_goes_on_from_where_it_stood() -> None:
    later = AgentClock(last=ClockMark(t=1e9, wall=time.time() - 50))
    assert 1e9 + 50 <= later.now() < 1e9 + 110
    assert later.wall(later.now() + 30) == pytest.approx(time.time() + 30, abs=60)


def test_clock_never_goes_back_when_the_wall_clock_did() -> None:
    stepped = AgentClock(last=ClockMark(t=4e9, wall=time.time() + 1e6))
    assert 4e9 <= stepped.now() < 4e9 + 60


def test_factor_makes_the_agents_seconds_shorter() -> None:
    fast = AgentClock(100.0, ClockMark(t=0.0, wall=time.time() - 2))
    assert fast.now() >= 200
    assert fast.real(60) == pytest.approx(0.6)


REPORT = {
    "t": 5.0, "kind": "metric", "name": "gpu_duty", "value": 0.3, "data": {"duty": 0.3, "device": "cpu", "window_s": 2}
}  # fmt: skip


@given(st.lists(st.integers(1, 40), max_size=30))
def test_reports_are_read_however_they_arrive(cuts: list[int]) -> None:
    lines = [b"no json", json.dumps({**REPORT, "value": 7}).encode(), json.dumps(REPORT).encode(), b'{"kind": "log"}']
    data, reports = b"\n".join(lines) + b"\n", DutyReports()
    for cut in cuts:
        reports.feed(data[:cut])
        data = data[cut:]
    reports.feed(data)

    assert reports.newest is not None
    assert reports.newest.share == 0.3


def test_line_without_end_costs_bounded_memory_and_is_no_report() -> None:
    reports = DutyReports()
    for _ in range(8):
        reports.feed(b"x" * LONGEST_LINE)
    assert len(reports._rest) == LONGEST_LINE
    reports.feed(b"\n" + json.dumps(REPORT).encode() + b"\n")
    assert reports.newest is not None


def test_state_comes_back(tmp_path: Path) -> None:
    kept = Remembered(State(now=7.0, policy=Policy(7.0, "certified")), ClockMark(7.0, 8.0))
    with StateFolder(tmp_path / "a" / "b") as folder:
        assert folder.load() is None
        folder.save(kept)
        assert folder.load() == kept


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b'{"t": true, "wall": 0, "law": {}}', b"[" * 100_000]
)
def test_state_that_cannot_be_read_is_a_line(broken: bytes, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(broken)
    with (
        StateFolder(tmp_path) as folder,
        pytest.raises(HostFault, match=r"must be the state that a run left; .*Remove"),
    ):
        folder.load()


def test_state_is_kept_where_the_system_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "oarbank-agent-check"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/invalid")
    assert default_folder().is_absolute()


PHASES = [
    (b"batch\n", "batch"),
    (b"two words\nand a line", "two words?and a line"),
    (b"\x1b[31mred\xff", "?[31mred\ufffd"),
    (b"x" * 100, "x" * 40),
    (b"", ""),
]


@pytest.mark.parametrize(("written", "shown"), PHASES)
def test_phase_is_fit_for_a_terminal(written: bytes, shown: str) -> None:
    with Scratch("oarbank-test") as scratch:
        assert scratch.phase() is None
        (scratch.workdir / "phase").write_bytes(written)
        assert scratch.phase() == shown


@needs.posix("named pipes")
def test_control_document_is_whole_each_time_and_newer_than_the_last() -> None:
    with Scratch("oarbank-test") as scratch:
        scratch.write_first({}, {})
        file = scratch.workdir / "control.json"
        assert json.loads(file.read_bytes()) == {"seq": 0}
        scratch.replace_control({"gpu_duty": 0.3, "pause": True})
        scratch.replace_control({"gpu_duty": 0.3})
        assert json.loads(file.read_bytes()) == {"seq": 2, "gpu_duty": 0.3}
        (scratch.workdir / "phase").unlink(missing_ok=True)
        os.mkfifo(scratch.workdir / "phase")  # nobody writes into it, and nobody waits for it
        assert scratch.phase() is None


def test_result_folder_is_never_one_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="must be empty or not there yet; found file"):
        ResultFolder(tmp_path)
    with pytest.raises(UsageError, match="must be a folder that can be made"):
        ResultFolder(tmp_path / "file")


def test_result_folder_keeps_what_a_result_names(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "a").mkdir(parents=True)
    (work / "a" / "texts.txt").write_text("hello")
    result = {
        "artifacts": [{"name": "t", "files": [{"path": "t", "local": "a/texts.txt"}, {"path": "u", "digest": "x"}]}]
    }
    folder = ResultFolder(tmp_path / "out")

    assert folder.keep(work, RESULT, result) == 2
    folder.drop()  # keeps what is there

    assert (tmp_path / "out" / "a" / "texts.txt").read_text() == "hello"
    assert (tmp_path / "out" / "result.json").read_bytes() == RESULT
