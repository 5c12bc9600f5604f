"""The programs that share a fake GPU, started as processes, and the GPU meter on one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.tree import ProcessTree
from tests.fakegpu.reader import FakeGpuReader
from tests.fakegpu.running import ROOT, FakeGpu

Process = subprocess.Popen[str]


@contextmanager
def governed(gpu: FakeGpu, duty: float, unit_ms: float, *more: str) -> Generator[Process]:
    """Other work at a duty, for as long as the block lasts; `answer` then gives what it says."""
    with _running("governed", gpu.path, "--duty", str(duty), "--unit-ms", str(unit_ms), *more) as process:
        yield process


@contextmanager
def program(gpu: FakeGpu, folder: Path, *more: str) -> Generator[Process]:
    """A protected program that draws into `folder`; `frames` then gives its frame times."""
    with _running("program", gpu.path, str(folder), *more) as process:
        yield process


@contextmanager
def metered(pid: int) -> Generator[GpuMeter]:
    """A GPU meter on the tree of a process, reading the fake GPU that the environment names."""
    meter = GpuMeter(ProcessTree(pid), [FakeGpuReader()])
    meter.start()
    try:
        yield meter
    finally:
        meter.stop()


def answer(process: Process) -> dict[str, Any]:
    """End a process that was started here and give what it printed."""
    process.terminate()
    printed, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(printed or "{}")


def frames(process: Process, folder: Path) -> list[tuple[float, float]]:
    """End the protected program and give each frame's start and length in seconds."""
    answer(process)
    return json.loads((folder / "frame_times.json").read_text())


@contextmanager
def _running(module: str, *arguments: str) -> Generator[Process]:
    command = [sys.executable, "-m", f"tests.fakegpu.{module}", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
