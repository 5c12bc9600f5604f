"""`record`: what it writes can be read by `recording`, holds no names, and says where no GPU is."""

from __future__ import annotations

import json
import os
import sys

from oarbank_agent_check.cli import main
from oarbank_agent_check.commands import record as record_command
from oarbank_agent_check.gpu_readings import Added, GpuReading
from oarbank_agent_check.readings import ProcessKey
from oarbank_agent_check.sources import gpu
from oarbank_agent_check.sources.cpu_recording import CpuRecorder


class Windows:
    """A GPU reader that tells windows, and keeps nothing rawer than its readings."""

    name = "windows"
    reads = "what it is told"

    def hindrance(self) -> None:
        return None

    def read(self, members) -> GpuReading:
        return GpuReading(1.0, added=tuple(Added(key.pid, 1000, 500, 2000) for key in members))

    def close(self) -> None:
        """Nothing is open."""


def record(*words: object) -> int:
    return main(["record", "--pid", str(os.getpid()), "--seconds", "0.05", *map(str, words)])


def test_without_a_gpu_the_cpu_is_recorded_and_the_exit_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpu.VARIABLE, "pdh" if sys.platform != "win32" else "ioreg")
    assert record("--out", tmp_path / "new/folder") == 3
    out, err = capsys.readouterr()
    assert "no GPU could be recorded here" in err.splitlines()[-1]
    file = tmp_path / f"new/folder/cpu-{os.getpid()}.json"
    assert str(file) in out
    assert main(["recording", str(file), "--pid", str(os.getpid()), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job_ns"] >= 0
    text = file.read_text()
    assert "python" not in text
    assert "pytest" not in text


def test_a_reader_without_raw_readings_is_recorded_as_it_reads(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpu.VARIABLE, f"{__name__}:Windows")
    assert record("--out", tmp_path, "--readings", 3) == 0
    capsys.readouterr()
    assert main(["recording", str(tmp_path / "windows.json"), "--pid", str(os.getpid()), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["job_ns"] == 2000
    assert main(["recording", str(tmp_path / "windows.json"), "--pid", str(os.getpid())]) == 0
    assert "0.000002000 s, between 0.000001000 s and 0.000004000 s" in capsys.readouterr().out


def test_what_was_read_before_the_end_is_kept(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpu.VARIABLE, f"{__name__}:Windows")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(record_command.time, "sleep", sleep)
    assert record("--out", tmp_path, "--readings", 9) == 3
    assert "ended after 2 of 9 readings" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "windows.json").read_text())["readings"]) == 2


class Broken(Windows):
    """A reader that breaks whenever it reads."""

    def read(self, members) -> GpuReading:
        raise RuntimeError("boom")


class Breaking(Windows):
    """A reader that breaks when it is asked whether it can read."""

    def hindrance(self) -> None:
        raise RuntimeError("boom")


def test_readers_that_break_are_no_traceback(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpu.VARIABLE, f"{__name__}:Breaking")
    assert record("--out", tmp_path) == 3
    assert "windows: the reader broke (RuntimeError: boom)" in capsys.readouterr().err
    monkeypatch.setenv(gpu.VARIABLE, f"{__name__}:Broken")
    assert record("--out", tmp_path) == 0
    capsys.readouterr()
    assert main(["recording", str(tmp_path / "windows.json"), "--pid", str(os.getpid()), "--json"]) == 3
    assert "boom" in capsys.readouterr().out


def test_wrong_use(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    assert record("--out", tmp_path / "file") == 2
    assert record("--out", "a\0b") == 2
    assert record("--out", tmp_path, "--readings", 1) == 2
    monkeypatch.setenv(gpu.VARIABLE, "nobody")
    assert record("--out", tmp_path) == 2
    assert main(["record", "--pid", str(1 << 30), "--out", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_a_file_that_cannot_be_written_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(gpu.VARIABLE, f"{__name__}:Windows")
    (tmp_path / "windows.json").mkdir()
    assert record("--out", tmp_path) == 3
    assert "windows.json: must be written" in capsys.readouterr().err


def test_processes_that_ended_are_left_out():
    recorder = CpuRecorder()
    raws = [recorder.raw([ProcessKey(2**22 + 1, 1.0)])] * 2
    assert recorder.recording(raws) == {}
    assert recorder.recording([]) == {}
