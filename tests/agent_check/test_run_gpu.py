"""`run` on a fake GPU: its counters decide, whatever the runner says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.sources.gpu import VARIABLE
from tests.agent_check.jobs_on_trial import LONG, Trial, end
from tests.agent_check.wait import eventually
from tests.fakegpu import reader, runners
from tests.fakegpu.running import ROOT, FakeGpu, fake_gpu

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: the fake GPU asks who connects"),
]
UNIT = "with self.duty.unit() as unit:\n            unit.busy(self.gpu.run(unit_s).busy_s)"
FREE = "self.gpu.run(unit_s)"


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as one:
        yield one


@pytest.fixture
def trial(tmp_path: Path, gpu: FakeGpu) -> Trial:
    return Trial(tmp_path, {VARIABLE: reader.SPEC, reader.VARIABLE: gpu.path, "PYTHONPATH": str(ROOT)})


def test_honest_runner_holds_its_duty_of_the_device(trial: Trial, gpu: FakeGpu) -> None:
    module = runners.build(trial.folder / "module", gpu.path)
    payload = json.dumps({"units": 150, "unit_s": 0.005})

    done = trial.run(module, "--measure", "gpu", "--time-factor", "4", payload=payload)

    assert done.returncode == 0, done.stderr
    held = re.search(r"held (0\.\d+), the mean of \d+ samples? by ", done.stderr)
    assert held is not None, done.stderr
    assert 0.02 < float(held[1]) <= 0.4
    assert not trial.journal("pause")


def test_runner_without_its_governor_that_says_it_uses_the_cpu_is_paused_for_its_gpu(
    trial: Trial, gpu: FakeGpu
) -> None:
    honest = runners.HONEST
    assert UNIT in honest
    source = honest.replace(UNIT, FREE).replace('device = "gpu"', 'device = "cpu"')
    module = runners.build(trial.folder / "module", gpu.path, source)

    with trial.running(module, "--measure", "gpu", "--time-factor", "10", payload=LONG, duty="0.1") as process:
        eventually(lambda: bool(trial.journal("pause")), "a pause")
        code, _, err = end(process)

    assert code == 1
    assert "paused until " in err
    shares = [entry["share"] for entry in trial.journal("pause")[0]["because"] if entry["kind"] == "sample"]
    assert len(shares) == 3
    assert min(shares) > 0.2
