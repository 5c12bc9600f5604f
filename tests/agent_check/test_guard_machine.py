"""`guard` with real processes on a fake GPU: a program draws frames, and governed jobs take what is left."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.guard_on_trial import Machine, ends
from tests.agent_check.jobs_on_trial import alive, descendants
from tests.agent_check.wait import eventually
from tests.fakegpu.processes import program
from tests.fakegpu.running import FakeGpu, fake_gpu

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"),
]
SAMPLE_S = 2.0  # on the agent's clock


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as one:
        yield one


@pytest.fixture
def machine(tmp_path: Path, gpu: FakeGpu) -> Machine:
    return Machine(tmp_path, gpu)


def test_jobs_run_free_and_share_a_budget_from_the_moment_a_program_draws(machine: Machine, gpu: FakeGpu) -> None:
    machine.configure(machine.protect(), machine.job("a", machine.module()), machine.job("b"))
    machine.more = ["--html", "page.html"]

    with machine.guarded() as process:
        machine.sees("sample", times=6)
        assert not machine.journal("duty", "pause")  # no program: no duty
        with program(gpu, machine.folder):
            machine.sees("duty", times=2)
            (came,) = machine.journal("protected")
            duties = machine.journal("duty")
            assert [(one["job"][0], one["duty"]) for one in duties] == [("a", 0.15), ("b", 0.15)]
            assert all(one["t"] - came["t"] <= SAMPLE_S for one in duties)
            # Its own speed is learnt while both are held, then they go on at their duty.
            machine.sees("resume", times=2)
            eventually(lambda: any(one["value"] is not None for one in machine.journal("pressure")), "a pressure")

            gpu.slow_down(4.5)
            eventually(lambda: 0.075 in machine.duties("a") and 0.075 in machine.duties("b"), "halved")
            halved = next(one for one in machine.journal("duty") if one["duty"] == 0.075)
            assert halved["because"][-1]["kind"] == "pressure"
            assert halved["because"][-1]["value"] >= 1

            gpu.slow_down(40)
            eventually(lambda: machine.duties("a")[-1] == 0 and machine.duties("b")[-1] == 0, "nothing is left")
            ended = next(one for one in machine.journal("duty") if one["duty"] == 0)
            row = ended["because"][-1]
            assert row["kind"] == "pressure"
            assert row["value"] is None or row["value"] >= 1
            assert ended["t"] - row["t"] <= SAMPLE_S

            gpu.slow_down(1)  # what is slow now becomes what it is alone
            eventually(lambda: machine.duties("a")[-1] == 0.025, "a step of growth")
            grown = next(one for one in machine.journal("duty") if one["duty"] == 0.025)
            assert grown["t"] - ended["t"] >= 60
        eventually(lambda: machine.duties("a")[-1] is None, "the program has left")
        left = descendants(process)
        assert ends(process) == 1

    assert not [pid for pid in left if alive(pid)]
    page = (machine.folder / "page.html").read_text()
    for word in ("game, protected", "duty 0.075", "times its target", "no limit", "ended at"):
        assert word in page, word
    assert "<script" not in page
    machine.replays()


def test_program_that_is_there_first_is_learnt_before_anything_starts(machine: Machine, gpu: FakeGpu) -> None:
    job = machine.job("a", machine.module(), "{ units = 60, unit_s = 0.002 }")
    machine.configure(machine.protect(), job)
    machine.more = ["--json"]
    with program(gpu, machine.folder):
        eventually(lambda: (machine.folder / "frames").exists(), "frames")
        done = machine.run()

    assert done.returncode == 0, done.stderr
    kinds = [one["kind"] for one in machine.journal() if one["kind"] in ("hold", "admit", "duty", "job_end", "pause")]
    assert kinds == ["hold", "admit", "duty", "job_end"]
    assert machine.journal("hold")[0]["reason"].startswith("GPU_BLOCKED: game's own speed is being learnt, ")
    lines = done.stdout.splitlines()
    assert [judge("guard-line-1", line).faults for line in lines] == [[]] * len(lines)
    states = [program["state"] for line in map(json.loads, lines) for program in line.get("programs") or ()]
    assert list(dict.fromkeys(states)) == ["learning its speed", "uses the GPU"]
    learnt = machine.journal("admit")[0]["t"] - machine.journal("hold")[0]["t"]
    assert learnt >= 19
    assert json.loads((machine.folder / "guard-results" / "a" / "result.json").read_text())["payload"]


def test_program_whose_counter_says_nothing_is_told_apart_from_one_that_is_learnt(
    machine: Machine, gpu: FakeGpu
) -> None:
    machine.configure(machine.protect().replace('"frames"', '"nowhere"'), machine.job("a", machine.module()))

    with program(gpu, machine.folder), machine.guarded() as process:
        machine.sees("hold", times=2)
        reasons = [one["reason"] for one in machine.journal("hold")]
        assert "is being learnt" in reasons[0]
        assert "cannot be learnt, its counter says nothing. Look at its progress" in reasons[1]
        eventually(lambda: "its speed is unknown" in machine.said(), "the line that says so")
        assert ends(process) == 1
    machine.replays()


def test_program_without_a_level_is_told_apart_too(machine: Machine, gpu: FakeGpu) -> None:
    without = machine.protect().replace("level = 0.3\n", "")
    machine.configure(without, machine.job("a", machine.module()))

    with program(gpu, machine.folder), machine.guarded() as process:
        machine.sees("hold")
        assert "no level is given beside game. Certify one with `oarbank-agent-check sweep`" in machine.said()
        assert ends(process) == 1


def test_what_cannot_throttle_waits_and_what_can_runs(machine: Machine, gpu: FakeGpu) -> None:
    plain = machine.module("plain", capabilities=["cancellable", "progress_events"])
    machine.configure(machine.protect(), machine.job("good", machine.module()), machine.job("plain", plain))

    with program(gpu, machine.folder), machine.guarded() as process:
        eventually(lambda: machine.duties("good") == [0.3], "the cooperative one runs, with all of the budget")
        holds = [one for one in machine.journal("hold") if one["job"].startswith("plain")]
        assert "cooperative_throttle" in holds[-1]["reason"]
        assert not [one for one in machine.journal("admit") if one["job"].startswith("plain")]
        assert ends(process, signal.SIGTERM) == 1


def test_one_that_cannot_throttle_or_pause_is_given_back_and_comes_again(machine: Machine, gpu: FakeGpu) -> None:
    plain = machine.module("plain", capabilities=["cancellable", "progress_events"])
    machine.configure(machine.protect(), machine.job("plain", plain))

    with machine.guarded() as process:
        machine.sees("sample", times=2)
        with program(gpu, machine.folder):
            machine.sees("release")
            machine.sees("hold")
        machine.sees("admit", times=2)
        assert ends(process) == 1

    assert len({one["job"] for one in machine.journal("admit")}) == 2


@pytest.mark.parametrize("rule", ["never", "when_no_gpu_protected"])
def test_rule_that_lets_nothing_run_beside_a_program(rule: str, machine: Machine, gpu: FakeGpu) -> None:
    machine.configure(machine.protect(), machine.job("a", machine.module()), rule=rule)

    with program(gpu, machine.folder), machine.guarded() as process:
        machine.sees("hold")
        machine.sees("protected")
        assert not machine.journal("admit")
        assert len(psutil.Process(process.pid).children()) == 0
        assert ends(process) == 1


def test_cheat_is_paused_by_what_the_gpu_says(machine: Machine, gpu: FakeGpu) -> None:
    cheat = machine.module("cheat", "    def unit(self, unit_s):\n        self.gpu.run(unit_s)")
    machine.configure(machine.protect(0.1), machine.job("cheat", cheat))

    with machine.guarded() as process:
        machine.sees("sample", times=2)
        with program(gpu, machine.folder, "--frame-ms", "2"):
            machine.sees("resume")  # the speed is learnt
            eventually(lambda: any("strike 1" in one["reason"] for one in machine.journal("pause")), "a strike")
            assert ends(process) == 1
