"""What Control writes, and how it meets an agent across processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from oarbank_sdk.control import Control, replace_text
from tests import needs
from tests.sdk.agent import Agent


def test_phase_is_one_line_and_leaves_nothing_beside_it(agent):
    ctl = Control(agent.workdir)
    ctl.phase("summing")
    assert (agent.workdir / "phase").read_bytes() == b"summing\n"
    assert os.listdir(agent.workdir) == ["phase"]
    with pytest.raises(ValueError, match="one line"):
        ctl.phase("a\nb")


@pytest.mark.parametrize(
    ("module", "reason", "written"),
    [
        (None, None, "module/stopped"),
        ("llmserve", None, "llmserve/stopped"),
        ("llmserve", "llmserve/preempted", "llmserve/preempted"),
        ("Not A Name", None, "module/stopped"),
    ],
)
def test_a_stop_is_acknowledged_by_a_transient_failure_and_75(agent, monkeypatch, module, reason, written):
    monkeypatch.delenv("OARBANK_MODULE", raising=False)
    if module is not None:
        monkeypatch.setenv("OARBANK_MODULE", module)
    assert Control(agent.workdir).acknowledge_stop(reason) == 75
    failure = json.loads((agent.workdir / "failure.json").read_text())
    assert (failure["reason"], failure["fault"]) == (written, "transient")


def test_a_refused_replace_is_tried_again(tmp_path, monkeypatch):
    calls: list[int] = []
    replace = os.replace

    def refuse_twice(*paths: str) -> None:
        calls.append(1)
        if len(calls) < 3:
            raise PermissionError("held by a reader")
        replace(*paths)

    monkeypatch.setattr(os, "replace", refuse_twice)
    replace_text(tmp_path / "x", "text\n")
    assert (tmp_path / "x").read_text() == "text\n"
    assert os.listdir(tmp_path) == ["x"]


def test_a_write_that_fails_leaves_the_old_text_and_nothing_beside_it(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="irectory"):
        replace_text(tmp_path / "x", "text")
    assert os.listdir(tmp_path) == ["x"]


# ---- other processes --------------------------------------------------------------------------------

RUNNER = """
import sys
from oarbank_sdk.control import Control, Stopped
ctl = Control()
ctl.phase("work")
try:
    while True:
        before = ctl.seq
        ctl.wait(newer_than=before)
        print("seen", ctl.seq, flush=True)
        ctl.safe_point()
        print("safe", ctl.seq, flush=True)
except Stopped:
    sys.exit(ctl.acknowledge_stop())
"""


@pytest.mark.realtime
@needs.posix("signals")
def test_another_process_follows_pause_resume_stop(tmp_path):
    agent = Agent(tmp_path)
    agent.write({"seq": 0})
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        env={**os.environ, "OARBANK_WORKDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None

    def say(**fields) -> None:
        agent.seq += 1
        replace_text(agent.path, json.dumps({"seq": agent.seq, **fields}))
        runner.send_signal(signal.SIGUSR1)

    while not (tmp_path / "phase").exists():
        time.sleep(0.01)
    for fields, lines in (({"pause": True}, ["seen 1"]), ({}, ["safe 2"]), ({"gpu_duty": 0.5}, ["seen 3", "safe 3"])):
        say(**fields)
        assert [runner.stdout.readline().strip() for _ in lines] == lines
    say(stop=True)
    assert runner.wait(60) == 75
    runner.stdout.close()
    assert json.loads((tmp_path / "failure.json").read_text())["fault"] == "transient"


@needs.posix("signals")
def test_an_early_nudge_does_not_kill_a_runner_that_was_started_as_agents_do(tmp_path):
    (tmp_path / "control.json").write_text('{"seq": 0}')
    once = RUNNER.replace("while True", "while ctl.seq < 0")
    code = "import os, signal; os.kill(os.getpid(), signal.SIGUSR1)\n" + once
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OARBANK_WORKDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
        check=False,
    )
    assert done.returncode == 0


@needs.posix("signals")
def test_a_late_nudge_does_not_kill_a_finished_runner(tmp_path):
    code = (
        "import atexit, os, signal\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGUSR1))\n"  # runs after what Control registered
        "from oarbank_sdk.control import Control\nControl()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
