"""`guard` killed and started again: no job is lost, no ban forgotten, nothing runs ungoverned meanwhile."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.guard_on_trial import Machine, ends
from tests.agent_check.jobs_on_trial import LLMSERVE, alive, descendants
from tests.agent_check.wait import eventually
from tests.fakegpu.processes import program
from tests.fakegpu.running import FakeGpu, fake_gpu

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"),
]
SHORT = "{ units = 5, unit_s = 0.002 }"
CHEAT = "    def unit(self, unit_s):\n        self.gpu.run(unit_s)"


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as one:
        yield one


@pytest.fixture
def machine(tmp_path: Path, gpu: FakeGpu) -> Machine:
    return Machine(tmp_path, gpu)


def test_killed_guard_leaves_nothing_running_and_goes_on(machine: Machine) -> None:
    machine.configure(machine.job("short", machine.module(), SHORT), machine.job("long"))
    with machine.guarded() as process:
        eventually(lambda: (machine.folder / "guard-results" / "short" / "result.json").exists(), "the first result")
        machine.sees("sample", times=3)
        left = descendants(process)
        assert len(left) >= 2
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        eventually(lambda: not [pid for pid in left if alive(pid)], "everybody is gone")

    before = machine.journal()
    machine.more = ["--html", "page.html"]
    with machine.guarded() as process:
        eventually(lambda: len(machine.journal("admit")) > sum(one["kind"] == "admit" for one in before), "it goes on")
        assert ends(process) == 1
    after = machine.journal()[len(before) :]
    gone = [one["job"] for one in after if one["kind"] == "job_end"]
    again = [one["job"] for one in after if one["kind"] == "job"]
    assert any(one.startswith("long-") for one in gone)  # what was killed is told to have ended
    assert [one.rpartition("-")[0] for one in again] == ["long"]  # and what is done is not run again
    assert "short: 1 of 1 are done already" in machine.said()
    page = (machine.folder / "page.html").read_text()
    assert page.count("may run") == 1  # this run's alone
    assert "Earlier runs are told in state/journal.ndjson." in page
    assert "short" not in re.sub(r"<section.*</section>", "", page, flags=re.DOTALL)


def test_ban_outlives_the_guard(machine: Machine, gpu: FakeGpu) -> None:
    machine.configure(machine.protect(0.1), machine.job("cheat", machine.module("cheat", CHEAT)))
    machine.factor = 30
    with program(gpu, machine.folder, "--frame-ms", "2"):
        assert machine.run().returncode == 1
        assert machine.journal("ban")
        machine.factor = 10
        with machine.guarded() as process:
            eventually(lambda: "is banned" in json.dumps(machine.journal("hold")[-1:]), "it waits for the ban to end")
            assert ends(process) == 1
    assert not machine.journal("unban")


def test_operation_becomes_jobs_one_after_the_other_and_each_has_its_result(machine: Machine) -> None:
    params = '{ prompts = ["rivers", "lakes", "seas"], per_job = 1, max_tokens = 4, backend = "stub" }'
    machine.configure(f'[[job]]\nname = "q"\nmodule = "{LLMSERVE}"\nop = "queue_prompts"\nparams = {params}\n')
    machine.more = ["--measure", "cpu"]

    done = machine.run()

    assert done.returncode == 0, done.stderr
    results = machine.folder / "guard-results"
    assert sorted(path.name for path in results.iterdir()) == ["q.1", "q.2", "q.3"]
    assert all((path / "completions.jsonl").exists() for path in results.iterdir())
    kinds = [one["kind"] for one in machine.journal("admit", "job_end")]
    assert kinds == ["admit", "job_end"] * 3

    again = machine.run()
    assert again.returncode == 0
    assert "q: 3 of 3 are done already" in again.stderr
    machine.configure(machine.job("q", machine.module(), SHORT))
    (results / "q").mkdir()
    refused = machine.run()
    assert refused.returncode == 2
    assert "must be a job's result or not there" in refused.stderr


def test_json_lines_and_a_folder_that_is_full_of_another(machine: Machine) -> None:
    machine.configure(machine.job("a", machine.module(), SHORT))
    machine.more = ["--json"]

    done = machine.run()

    assert done.returncode == 0, done.stderr
    assert [judge("guard-line-1", line).faults for line in done.stdout.splitlines()] == [[]] * done.stdout.count("\n")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["kind"] for line in lines} == {"state", "said", "end"}
    assert lines[0]["kind"] in ("said", "state")
    assert lines[-1] == {"kind": "end", "t": lines[-1]["t"], "exit": 0}
    state = next(line for line in lines if line["kind"] == "state")
    assert [one["name"] for one in state["jobs"]] == ["a"]

    machine.configure(machine.job("a", payload="{ units = 6, unit_s = 0.002 }"))
    other = machine.run()
    assert other.returncode == 2
    assert "found that of another of its name" in other.stderr
