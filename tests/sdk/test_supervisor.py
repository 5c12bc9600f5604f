"""A workload's supervisor in a process of its own: callbacks in order, nothing restarted, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oarbank_sdk.control import replace_text
from oarbank_sdk.supervisor import Supervisor
from tests import needs

pytestmark = [pytest.mark.realtime, needs.posix("nudges are signals")]

CHILD = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); "
    "print('up', flush=True); time.sleep(300)"
)
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"

WORKLOAD = """
import logging, sys
from oarbank_sdk.duty import Duty
from oarbank_sdk.supervisor import Supervisor

def say(*words):
    print(*words, flush=True)

duty = Duty(None)
def follow(share):
    duty.set(share)
    say("duty", duty.duty)
    if share == 0.9:
        raise RuntimeError("a broken knob")

sys.exit(Supervisor([sys.executable, "-c", sys.argv[1]], gpu_duty=follow, pause=lambda on: say("pause", on),
                    stop=lambda: say("stop"), stop_grace_s=float(sys.argv[2])).run())
"""


def as_agents_do() -> None:
    """In the child, before the exec: an early nudge is lost; Ctrl-C works also where it was ignored for us."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Workload:
    """A supervised process, steered as an agent steers it."""

    def __init__(self, workdir: Path, child: str, *, first: dict | None = None, grace_s: float = 20) -> None:
        self.path = workdir / "control.json"
        self.seq = 0
        if first is not None:
            self.path.write_text(json.dumps({"seq": 0, **first}))
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKLOAD, child, str(grace_s)],
            env={**os.environ, "OARBANK_WORKDIR": str(workdir)},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=as_agents_do,
        )  # fmt: skip

    def say(self, **fields) -> None:
        self.seq += 1
        replace_text(self.path, json.dumps({"seq": self.seq, **fields}))
        self.process.send_signal(signal.SIGUSR1)

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def children(self) -> list[str]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return path.read_text(encoding="utf-8").split()

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@pytest.fixture
def start(tmp_path):
    started: list[Workload] = []

    def begin(child: str = CHILD, **options) -> Workload:
        started.append(Workload(tmp_path, child, **options))
        return started[-1]

    yield begin
    for workload in started:
        if workload.process.poll() is None:
            os.killpg(workload.process.pid, signal.SIGKILL)
            workload.process.communicate()


def test_callbacks_follow_the_document_in_order(start):
    workload = start(first={"gpu_duty": 0.3})
    assert {workload.line(), workload.line()} == {"duty 0.3", "up"}
    workload.say(gpu_duty=0.5, pause=True)
    assert [workload.line(), workload.line()] == ["duty 0.5", "pause True"]
    workload.say(gpu_duty=0.5)
    assert workload.line() == "pause False"
    workload.say()
    assert workload.line() == "duty None"
    workload.say(stop=True)
    assert workload.end() == (7, "stop\n", "")


def test_without_a_limit_nothing_is_told_at_the_start(start):
    workload = start()
    assert workload.line() == "up"
    workload.say(gpu_duty=0.2)
    assert workload.line() == "duty 0.2"
    workload.say(stop=True)
    assert workload.end()[0] == 7


def test_a_callback_that_raises_is_logged_and_forgotten(start):
    workload = start(first={"gpu_duty": 0.9})
    assert {workload.line(), workload.line()} == {"duty 0.9", "up"}
    workload.say(gpu_duty=0.2)
    assert workload.line() == "duty 0.2"
    workload.say(stop=True)
    code, _, err = workload.end()
    assert code == 7
    assert "a broken knob" in err


@pytest.mark.parametrize(("child", "code"), [("raise SystemExit(5)", 5), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_exit_code_is_the_process_s_and_nothing_is_restarted(start, child, code):
    assert start(child).end() == (code, "", "")


def test_a_process_deaf_to_sigterm_is_killed_after_the_grace(start):
    workload = start(DEAF, grace_s=0.2)
    assert workload.line() == "up"
    workload.say(stop=True)
    assert workload.end()[0] == 137


def test_sigterm_to_the_supervisor_ends_the_process_first(start):
    workload = start()
    assert workload.line() == "up"
    workload.process.send_signal(signal.SIGTERM)
    assert workload.end()[:2] == (7, "stop\n")


def test_the_process_gets_no_document(start):
    child = "import os; print(sorted(n for n in os.environ if n in ('OARBANK_WORKDIR', 'OARBANK_CONTROL_EVENT')))"
    assert start(child).end() == (0, "[]\n", "")


@needs.linux("/proc")
def test_nothing_is_left_behind_when_the_supervisor_is_interrupted(start):
    workload = start()
    assert workload.line() == "up"
    (child,) = workload.children()
    workload.process.send_signal(signal.SIGINT)
    workload.end()
    for _ in range(1000):
        if not Path(f"/proc/{child}").exists():
            return
        time.sleep(0.01)
    raise AssertionError("the process outlived its supervisor")


@needs.linux("/proc")
def test_a_second_interrupt_leaves_nothing_behind(start):
    workload = start(DEAF, grace_s=60)
    assert workload.line() == "up"
    (child,) = workload.children()
    workload.process.send_signal(signal.SIGINT)
    assert workload.line() == "stop"
    time.sleep(0.1)
    workload.process.send_signal(signal.SIGINT)
    workload.end()
    assert not Path(f"/proc/{child}").exists()


def test_with_a_stop_in_force_nothing_is_started(start):
    assert start(first={"stop": True}).end()[:2] == (75, "")


def test_run_again_tells_the_next_process_its_duty(tmp_path, monkeypatch):
    monkeypatch.setenv("OARBANK_WORKDIR", str(tmp_path))
    (tmp_path / "control.json").write_text('{"seq": 0, "gpu_duty": 0.3}')
    told: list[float | None] = []
    supervisor = Supervisor([sys.executable, "-c", "pass"], gpu_duty=told.append)
    assert [supervisor.run(), supervisor.run()] == [0, 0]
    assert told == [0.3, 0.3]


def test_duties_that_were_overtaken_in_the_line_are_not_told(tmp_path, monkeypatch):
    monkeypatch.setenv("OARBANK_WORKDIR", str(tmp_path))
    told: list[float | None] = []
    supervisor = Supervisor(["x"], gpu_duty=told.append)

    class Document:
        pause = False
        gpu_duty = 0.0

    for supervisor_duty in (0.1, 0.2, 0.3):
        document = Document()
        document.gpu_duty = supervisor_duty
        supervisor._tell(document)
    supervisor._calls.put(None)
    supervisor._call()
    assert told == [0.3]


@pytest.mark.parametrize("argv", ["sleep 3", [], ()])
def test_argv_must_be_a_list_of_words(argv):
    with pytest.raises(ValueError, match="argv: must be a list of words"):
        Supervisor(argv)
