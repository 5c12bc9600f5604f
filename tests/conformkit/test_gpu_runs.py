"""The kit on a machine where a GPU source reads, or where it is not the one that was asked for."""

from __future__ import annotations

import pytest

from oarbank_agent_check.sources.gpu import VARIABLE as READER
from oarbank_conformkit.report import document
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform
from tests.conformkit.test_mutants import excused, failed
from tests.fakegpu import runners

HIDES = runners.HONEST.replace(
    'return Client(os.environ["FAKE_GPU_SOCKET"])',
    'gpu = Client(os.environ["FAKE_GPU_SOCKET"]); gpu.ask({"hide": os.getpid()}); return gpu',
)


@pytest.mark.realtime
def test_runner_that_the_driver_hides_is_unknown_and_not_green(conform_gpu: Conform) -> None:
    assert HIDES != runners.HONEST

    report = conform_gpu(HIDES, only=["duty"])

    assert failed(report) == set()
    assert report.exit == 3
    unknown = {one.rule: one.detail for one in report.checks if one.status == "unknown"}
    assert {"duty.measured_share", "duty.burst"} <= set(unknown)
    assert "does not show this process" in unknown["duty.measured_share"]


@pytest.mark.realtime
def test_honest_runner_on_the_cpu_is_measured_on_both(conform_gpu: Conform) -> None:
    report = conform_gpu(bundles.runner(), only=["duty"])

    assert failed(report) == set()
    [spec] = document(report)["duty_specs"]
    [other] = spec["measured"]["others"]
    assert (spec["measured"]["device"], other["device"], other["share"]) == ("cpu", "gpu", 0.0)
    assert {one.rule for one in report.checks if one.status != "pass"} <= excused(report)


@pytest.mark.realtime
def test_reader_that_does_not_exist_is_named(conform_gpu: Conform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(READER, "no.such:Reader")

    report = conform_gpu(runners.HONEST, only=["duty"])

    [share] = [one for one in report.checks if one.rule == "duty.measured_share"]
    assert share.status == "unknown"
    assert "no.such:Reader" in share.detail
