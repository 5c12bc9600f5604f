"""The governor on a device, as the GPU meter sees it from outside: real processes, real time.

A busy machine can only take from a share, never add to it: the upper bounds are tight, and what is lost below them
must be lost to the governor's own reports too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarbank_sdk.events import DutyReport, complete_lines, duty_report, events
from tests.fakegpu.processes import answer, frames, governed, metered, program
from tests.fakegpu.reader import VARIABLE
from tests.fakegpu.running import FakeGpu, fake_gpu

WINDOW_S = 1.2
REPORT_S = 2.3  # long enough for a report


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    with fake_gpu() as device:
        monkeypatch.setenv(VARIABLE, device.path)
        yield device


def at_work(gpu: FakeGpu, pid: int) -> None:
    """Wait until a process has used the device."""
    while not any(one["pid"] == pid and one["busy_ns"] for one in gpu.counters()["clients"]):
        time.sleep(0.01)


def reports(path: Path) -> list[DutyReport]:
    lines, _ = complete_lines(path.read_bytes() if path.exists() else b"")
    return [report for event in events(lines) if (report := duty_report(event)) is not None]


@pytest.mark.realtime
@pytest.mark.parametrize(("unit_ms", "window_s"), [(2, REPORT_S), (20, WINDOW_S)])
def test_governor_holds_its_duty_of_an_idle_gpu(gpu: FakeGpu, tmp_path: Path, unit_ms: int, window_s: float) -> None:
    path = tmp_path / "events.ndjson"
    with governed(gpu, 0.3, unit_ms, "--events", str(path)) as work:
        at_work(gpu, work.pid)
        with metered(work.pid) as meter:
            time.sleep(window_s)
            sample = meter.sample()
        told = answer(work)

    assert sample.source == "fake-gpu"
    assert sample.share is not None
    assert 0.1 < sample.share < 0.32
    assert sample.share == pytest.approx(told["device_s"] / told["took_s"], abs=0.05)
    held = reports(path)
    assert held or window_s < REPORT_S
    assert all(report.busy_source == "device" and report.device == "gpu" for report in held)
    assert all(report.share < 0.32 for report in held)


@pytest.mark.realtime
def test_device_time_is_charged_beside_frames_and_not_the_wait_for_them(gpu: FakeGpu, tmp_path: Path) -> None:
    shares = {}
    with program(gpu, tmp_path) as drawing:
        at_work(gpu, drawing.pid)
        for charged in ("device", "wall"):
            with governed(gpu, 0.3, 2, *(["--wall"] if charged == "wall" else [])) as work:
                at_work(gpu, work.pid)
                with metered(work.pid) as meter:
                    time.sleep(WINDOW_S)
                    shares[charged] = meter.sample().share
                told = answer(work)
            assert told["wall_s"] > told["device_s"]
        drawn = frames(drawing, tmp_path)

    assert int((tmp_path / "frames").read_text()) == len(drawn) > 10
    assert min(length_s for _, length_s in drawn) >= 0.008
    assert shares["wall"] < shares["device"] < 0.32


@pytest.mark.realtime
def test_slower_device_is_held_to_the_same_share(gpu: FakeGpu) -> None:
    with governed(gpu, 0.3, 5) as work:
        at_work(gpu, work.pid)
        gpu.slow_down(4)
        time.sleep(0.1)  # the last unit at full clock is over
        with metered(work.pid) as meter:
            time.sleep(WINDOW_S)
            sample = meter.sample()
        answer(work)

    assert sample.share is not None
    assert 0.1 < sample.share < 0.33


@pytest.mark.realtime
def test_process_that_the_device_hides_is_unknown_and_not_zero(gpu: FakeGpu) -> None:
    with governed(gpu, 0.3, 5) as work:
        at_work(gpu, work.pid)
        gpu.hide(work.pid)
        with metered(work.pid) as meter:
            time.sleep(0.1)
            sample = meter.sample()

    assert sample.share is None
    assert "does not show" in sample.unknown[0].reason
