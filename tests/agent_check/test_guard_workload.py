"""`guard` and a workload: its own control document, told through the SDK's supervisor, measured as a job is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from tests.agent_check.guard_on_trial import Machine, ends
from tests.agent_check.jobs_on_trial import alive, descendants
from tests.agent_check.wait import eventually
from tests.fakegpu.processes import program
from tests.fakegpu.running import FakeGpu, fake_gpu

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"),
]
WORKLOAD = """
import json, sys, threading, time
from oarbank_sdk.duty import Duty
from oarbank_sdk.supervisor import Supervisor
from tests.fakegpu.client import Client

duty, going, told = Duty(None), threading.Event(), open("told", "a", buffering=1)
going.set()

def note(what, value):
    told.write(json.dumps([what, value]) + chr(10))

def work():
    with Client(sys.argv[1]) as gpu:
        while True:
            going.wait()
            with duty.unit() as unit:
                unit.busy(gpu.run(0.002).busy_s)

def set_duty(d):
    note("duty", d)
    duty.set(d)

def hold(paused):
    note("pause", paused)
    (going.clear if paused else going.set)()

threading.Thread(target=work, daemon=True).start()
sup = Supervisor(["sleep", "600"], gpu_duty=set_duty, pause=hold, stop=lambda: note("stop", None))
sys.exit(sup.run())
"""
CHEAT = """
import sys
from tests.fakegpu.client import Client
with Client(sys.argv[1]) as gpu:
    while True:
        gpu.run(0.002)
"""
ENTRY = """
[[workload]]
name = "chat"
command = ["{python}", "workload.py", "{socket}"]
capabilities = {capabilities}
stop_grace_s = {grace_s}
"""


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as one:
        yield one


@pytest.fixture
def machine(tmp_path: Path, gpu: FakeGpu) -> Machine:
    return Machine(tmp_path, gpu)


def workload(machine: Machine, source: str, *capabilities: str, grace_s: int = 20) -> str:
    (machine.folder / "workload.py").write_text(source)
    able = json.dumps(list(capabilities))
    return ENTRY.format(python=sys.executable, socket=machine.gpu.path, capabilities=able, grace_s=grace_s)


def told(machine: Machine) -> list[list[object]]:
    try:
        return [json.loads(line) for line in (machine.folder / "told").read_text().splitlines()]
    except FileNotFoundError:
        return []


def test_workload_is_told_its_duty_its_pauses_and_its_stop(machine: Machine, gpu: FakeGpu) -> None:
    entry = workload(machine, WORKLOAD, "cooperative_throttle", "cooperative_pause")
    machine.configure(machine.protect(), entry)

    with machine.guarded() as process:
        machine.sees("sample", times=3)
        assert told(machine) == []
        with program(gpu, machine.folder):
            eventually(lambda: ["pause", False] in told(machine), "it goes on at its duty")
        eventually(lambda: ["duty", None] in told(machine), "no limit any more")
        left = descendants(process)
        assert ends(process) == 0  # it is meant to run until it is stopped

    heard = told(machine)
    assert heard[:3] == [["duty", 0.3], ["pause", True], ["pause", False]]
    assert heard[-1] == ["stop", None]
    assert not [pid for pid in left if alive(pid)]
    assert "chat: ended after" in machine.said()


def test_workload_that_holds_nothing_is_paused_and_then_stopped(machine: Machine, gpu: FakeGpu) -> None:
    entry = workload(machine, CHEAT, "cooperative_throttle", "freeze_ok", grace_s=1)
    machine.configure(machine.protect(0.1), entry)
    machine.factor = 30

    with program(gpu, machine.folder, "--frame-ms", "2"):
        done = machine.run()

    assert done.returncode == 1, done.stderr
    strikes = [one for one in machine.journal("pause") if "strike" in one["reason"]]
    assert len(strikes) == 2
    assert [one["job"] for one in machine.journal("stop")] == [strikes[0]["job"]]
    assert [one["module"] for one in machine.journal("ban")] == ["chat"]
    assert "chat: stopped after" in done.stderr


def test_workload_ends_with_the_last_job(machine: Machine) -> None:
    entry = workload(machine, WORKLOAD, "cooperative_throttle", "cooperative_pause")
    machine.configure(machine.job("a", machine.module(), "{ units = 5, unit_s = 0.002 }"), entry)

    done = machine.run()

    assert done.returncode == 0, done.stderr
    assert "chat: ended after" in done.stderr
    assert "all jobs are done" in done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ('["sh", "-c", "echo so it goes >&2; exit 4"]', 1, "after 0:00 with status 4; its last words: so it goes"),
        ('["true"]', 0, "ended by itself after 0:00 with status 0"),
        ('["no-such-program"]', 1, "failed: it must start; No such file or directory"),
    ],
)
def test_workload_that_ends_by_itself(command: str, code: int, said: str, machine: Machine) -> None:
    machine.configure(f'[[workload]]\nname = "w"\ncommand = {command}\n')

    done = machine.run()

    assert done.returncode == code, done.stderr
    assert said in done.stderr


def test_workload_that_ends_takes_no_other_with_it(machine: Machine) -> None:
    machine.configure(
        '[[workload]]\nname = "short"\ncommand = ["true"]\n[[workload]]\nname = "long"\ncommand = ["sleep", "600"]\n'
    )

    with machine.guarded() as process:
        eventually(lambda: "short: ended by itself" in machine.said(), "the short one ends")
        machine.sees("sample", times=5)
        assert ends(process) == 0

    assert "long: ended after" in machine.said()
    assert "all jobs are done" not in machine.said()
