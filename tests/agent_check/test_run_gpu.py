"""`run` on a fake GPU: its counters decide, whatever the runner says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.sources.gpu import VARIABLE
from tests.agent_check.jobs_on_trial import LONG, Trial
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


def test_honest_runner_holds_its_duty_of_the_device_and_is_never_paused(trial: Trial, gpu: FakeGpu) -> None:
    module = runners.build(trial.folder / "module", gpu.path)
    payload = json.dumps({"units": 300, "unit_s": 0.005})

    done = trial.run(module, "--measure", "gpu", "--time-factor", "2", payload=payload, duty="0.3")

    assert done.returncode == 0, done.stderr
    held = re.search(r"held (0\.\d+), the mean of (\d+) samples by fake-gpu; asked at most 0\.300", done.stderr)
    assert held is not None, done.stderr
    assert int(held[2]) >= 2
    # On a busy machine units come late and it holds less; it never holds more but for a unit at the ends.
    assert 0.15 <= float(held[1]) <= 0.36
    assert not trial.journal("pause")
    assert not trial.journal("stop")


def test_ungoverned_runner_is_paused_twice_stopped_at_the_third_strike_and_its_module_banned(
    trial: Trial, gpu: FakeGpu
) -> None:
    honest = runners.HONEST
    assert UNIT in honest
    source = honest.replace(UNIT, FREE).replace('device = "gpu"', 'device = "cpu"')  # what it says decides nothing
    module = runners.build(trial.folder / "module", gpu.path, source)
    asked = ("--measure", "gpu", "--time-factor", "15")

    done = trial.run(module, *asked, payload=LONG, duty="0.1")

    assert done.returncode == 1, done.stderr
    orders = [one for one in trial.journal() if one["kind"] in ("pause", "resume", "stop", "ban", "unban")]
    assert [one["kind"] for one in orders] == ["pause", "resume", "pause", "resume", "stop", "ban"]
    strikes = [one for one in orders if one["kind"] in ("pause", "stop")]
    assert [one["reason"].rpartition("; ")[2] for one in strikes] == [f"strike {i} of 3" for i in (1, 2, 3)]
    for one in strikes:
        shares = [told["share"] for told in one["because"] if told["kind"] == "sample"]
        assert len(shares) == 3
        assert min(shares) > 0.2  # its duty and 0.1
    *_, stop, ban = orders
    assert ban["module"] == "org.example.standin"
    assert ban["until"] - ban["t"] == 3600
    assert stop["t"] == ban["t"]
    assert [one["kind"] for one in trial.journal() if one["kind"] in ("stop", "job_end")] == ["stop", "job_end"]
    trial.replays()

    again = trial.run(module, *asked, payload=LONG, duty="0.1")

    assert again.returncode == 1
    assert "not started: GPU_BLOCKED: module org.example.standin is banned" in again.stderr
    assert len(trial.journal("admit")) == 1
