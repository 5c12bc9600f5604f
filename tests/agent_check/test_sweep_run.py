"""`sweep` from outside: real processes on a fake GPU, wrong words, and what Ctrl-C leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from oarbank_agent_check import cli
from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.sources.gpu import VARIABLE
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.jobs_on_trial import HEARS_INTERRUPTS, LONG, PROGRAM, bundle
from tests.agent_check.wait import eventually
from tests.fakegpu import reader, runners
from tests.fakegpu.processes import program
from tests.fakegpu.running import ROOT, FakeGpu, fake_gpu

linux = pytest.mark.skipif(
    not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"
)
PAYLOAD = json.dumps({"units": 1_000_000, "unit_s": 0.002})
FRAMES = ("--frame-ms", "3", "--rate", "1000")  # always one to draw: what the work takes, it loses


@pytest.fixture
def gpu(tmp_path: Path) -> Iterator[FakeGpu]:
    with fake_gpu() as one, program(one, tmp_path, *FRAMES):
        eventually((tmp_path / "frames").exists, "a frame")
        yield one


def environment(gpu: FakeGpu) -> dict[str, str]:
    return {**os.environ, VARIABLE: reader.SPEC, reader.VARIABLE: gpu.path, "PYTHONPATH": str(ROOT)}


def words(folder: Path, module: Path, *more: str) -> list[str]:
    return [
        "sweep", str(module), "--payload", PAYLOAD, "--progress", f"@{folder}/frames", "--data", str(folder / "data"),
        "--out", str(folder / "level.json"), "--window", "0.3", "--settle", "0.15", "--least-pairs", "8", *more,
    ]  # fmt: skip


@linux
@pytest.mark.realtime
def test_level_is_certified_beside_a_program_that_draws(tmp_path: Path, gpu: FakeGpu) -> None:
    module = runners.build(tmp_path / "module", gpu.path, timeout_s=600)
    asked = words(tmp_path, module, "--levels", "0.1", "--target", "0.8", "--time-limit", "90", "--seed", "5", "--json")

    done = subprocess.run(
        [PROGRAM, *asked], env=environment(gpu), capture_output=True, text=True, timeout=110, check=False
    )

    assert done.returncode == 0, done.stderr
    text = (tmp_path / "level.json").read_bytes()
    assert judge("level-certificate-1", text).faults == []
    certificate = json.loads(text)
    [tried] = certificate["levels"]
    assert (certificate["level"], tried["verdict"], certificate["measured"]["held"]) == (0.1, "pass", "fake-gpu")
    assert 0.02 < tried["held"] <= 0.2
    assert tried["harm"] < 0.8
    *pairs, last = map(json.loads, done.stdout.splitlines())
    assert last == certificate
    assert [one["pair"] for one in pairs] == tried["pairs"]
    assert "level 0.100: passes, harm " in done.stderr


@linux
@pytest.mark.realtime
def test_interrupt_leaves_no_process_and_no_certificate(tmp_path: Path, gpu: FakeGpu) -> None:
    module = runners.build(tmp_path / "module", gpu.path, timeout_s=600)
    command = [sys.executable, "-c", HEARS_INTERRUPTS, PROGRAM, *words(tmp_path, module, "--json")]
    scratch = tmp_path / "tmp"
    scratch.mkdir()

    with subprocess.Popen(
        command, env={**environment(gpu), "TMPDIR": str(scratch)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            below = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()

    assert first["pair"]["first"]["progress"] is not None
    assert process.returncode == 3
    assert "stopped by Ctrl-C: nothing is certified, and no certificate is written" in err
    assert below
    eventually(lambda: not any(one.is_running() for one in below), "the end of all processes")
    assert not (tmp_path / "level.json").exists()
    assert list(scratch.iterdir()) == []


def refused(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = cli.main(["sweep", *words])
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (("--target", "0"), "must be 0.001 to 0.9; found '0'"),
        (("--target", "nan"), "found 'nan'"),
        (("--levels", "0.2,0.1"), "must be at most 40 rising numbers"),
        (("--levels", ""), "rising numbers"),
        (("--levels", "0.1,2"), "rising numbers"),
        (("--window", "1e9"), "must be 0.2 to 300 seconds"),
        (("--settle", "-1"), "must be 0.1 to 60 seconds"),
        (("--time-limit", "forever"), "must be 1 to 604800 seconds"),
        (("--least-pairs", "2"), "must be a whole number, 5 to 100000"),
        (("--seed", "9" * 40), "must be a whole number"),
        (("--program", "\n"), "printable"),
        (("--progress", "@gone"), "--progress: gone: must be readable"),
        (("--progress", "echo many"), "must print a number of at least 0; found b'many"),
        (("--payload", "[]"), "must be one JSON object"),
        (("--stage", "none"), "must be a stage of the module"),
        (("--window", "60"), "must fit into the stage's timeout_s, 60 s; found 124 s a pair"),
        (("--out", "/nowhere/at/all.json"), "must be in a folder to write in"),
        (("--out", "frames"), "must not be there yet; found it"),
    ],
)
def test_wrong_words_are_told_in_a_line(
    more: tuple[str, ...], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frames").write_text("5")
    usual = ("--payload", LONG, "--progress", "@frames", "--measure", "cpu", "--data", "data")

    code, err = refused(str(bundle(tmp_path)), *usual, *more, capsys=capsys)

    assert code == 2
    assert why in err
    assert err.count("\n") == 1


def test_module_that_never_gets_a_duty_has_no_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = bundle(tmp_path, capabilities=["cancellable"])

    code, err = refused(str(module), "--payload", LONG, "--progress", "echo 1", capsys=capsys)

    assert code == 2
    assert "must declare cooperative_throttle and a gpu use" in err


def test_machine_without_readable_gpu_time_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, reader.SPEC)
    monkeypatch.setenv(reader.VARIABLE, str(tmp_path / "no-gpu"))
    asked = ("--payload", LONG, "--progress", "echo 1", "--data", str(tmp_path / "data"))

    code, err = refused(str(bundle(tmp_path)), *asked, capsys=capsys)

    assert code == 3
    assert "--measure gpu: GPU time must be readable here" in err
    assert err.count("\n") == 1
