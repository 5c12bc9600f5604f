"""`guard` with a certificate as `sweep` writes it, judged as it is judged on a machine: it holds, or nothing starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check import certificate
from oarbank_agent_check.certificate import How
from oarbank_agent_check.certify import Rules
from oarbank_agent_check.host_facts import host_facts, work_facts
from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.jobs.manifest import read_manifest
from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.guard_on_trial import Machine, ends
from tests.agent_check.paper_program import program as on_paper
from tests.agent_check.paper_program import sweep
from tests.agent_check.wait import eventually
from tests.fakegpu.processes import program
from tests.fakegpu.running import FakeGpu, fake_gpu

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"),
]
FOUND = sweep(on_paper("game", "gaussian", 1), Rules())
PAYLOAD: dict[str, Any] = {"units": 1_000_000, "unit_s": 0.002}


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as one:
        yield one


@pytest.fixture
def machine(tmp_path: Path, gpu: FakeGpu) -> Machine:
    """A machine whose configuration names a certificate, which was made for the module that it runs."""
    machine = Machine(tmp_path, gpu)
    machine.configure(machine.protect('"@level.json"'), machine.job("a", machine.module()))
    folder = tmp_path / "module"
    module = read_manifest(str(folder)).module
    assert module is not None
    document = certificate.document(
        FOUND, host=host_facts(this_host()), how=How("file", "fake-gpu", "gpu", 10.0, 2.0), made=1.79e9, took_s=60.0,
        work=work_facts(module, folder, module.stages[0], PAYLOAD, tmp_path), seed=1,
    )  # fmt: skip
    (tmp_path / "level.json").write_text(json.dumps(document))
    assert judge(certificate.KIND, (tmp_path / "level.json").read_bytes()).faults == []
    return machine


def test_certified_level_is_what_the_job_gets_beside_the_program(machine: Machine, gpu: FakeGpu) -> None:
    assert FOUND.level is not None
    level = int(FOUND.level * 1000) / 1000

    with program(gpu, machine.folder), machine.guarded() as process:
        eventually(lambda: bool(machine.duties("a")), "a duty")
        assert machine.duties("a")[0] == level
        told = [one for one in machine.journal("protected") if one.get("levels")]
        assert told[0]["levels"] == {"org.example.standin": FOUND.level}
        assert "level" not in told[0] or told[0]["level"] is None
        assert ends(process) == 1


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ("module/gpu_stand_in.py", "the module's files was"),
        ("module/oarbank-module.toml", "the module's files was"),
        ("level.json", "must have passed"),
    ],
)
def test_guard_starts_nothing_when_what_was_certified_has_changed(changed: str, why: str, machine: Machine) -> None:
    path = machine.folder / changed
    if changed == "level.json":  # a level that no window has shown
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "level": max(one["level"] for one in document["levels"])}))
    else:
        path.write_text(path.read_text() + "# faster\n")

    done = machine.run()

    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "guard.toml: line " in line
    assert "/protect/0/level: " in line
    assert why in line
    assert not machine.journal()
    assert not list(machine.folder.glob("guard-results/*"))
