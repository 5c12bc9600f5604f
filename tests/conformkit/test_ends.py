"""However the kit ends in the middle of a measure, no process of the runner is left: detached ones included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from oarbank_conformkit.suites import duty
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform

LONG_S = 60.0

FAMILY = """
    def phase(self) -> None:
        self.tell()
        if os.fork() == 0:                  # a child that is deaf to whoever asks it nicely
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self.tell()
            time.sleep(120)
        if os.fork() == 0:                  # a grandchild that left the session and lost its parent
            os.setsid()
            if os.fork() == 0:
                self.tell()
                time.sleep(120)
            os._exit(0)
        super().phase()

    def tell(self) -> None:
        with open(MARKER, "a") as file:
            file.write(f"{os.getpid()} {self.args.workdir}\\n")

    def unit(self, unit_s: float) -> None:
        if self.ctl.gpu_duty is not None:
            open(MARKER + ".held", "a").close()
        super().unit(unit_s)
"""


def bundle_of(folder: Path, marker: Path) -> Path:
    return bundles.build(folder, bundles.runner(FAMILY, prelude=f"MARKER = {str(marker)!r}"))


def until(true: Callable[[], object]) -> None:
    give_up = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def told(marker: Path) -> list[tuple[int, str]]:
    """Pids and workdirs of those that told."""
    lines = marker.read_text(encoding="utf-8").splitlines() if marker.exists() else []
    return [(int(pid), workdir) for pid, _, workdir in (line.partition(" ") for line in lines)]


def living(marker: Path) -> list[int]:
    alive = []
    for pid, _ in told(marker):
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.append(pid)
        except psutil.NoSuchProcess:
            continue
    return alive


@pytest.mark.realtime
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: elsewhere orphans cannot be followed")
@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_kit_that_is_ended_in_a_measure_leaves_nobody(number: str, tmp_path: Path) -> None:
    marker = tmp_path / "pids"
    folder = bundle_of(tmp_path / "module", marker)
    command = [sys.executable, "-m", "oarbank_sdk.cli", "conform", str(folder), "--only", "duty"]
    kit = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until(lambda: len(told(marker)) == 3 and os.path.exists(f"{marker}.held"))
        os.kill(kit.pid, getattr(signal, number))
        kit.wait(LONG_S)
        until(lambda: not living(marker))
        until(lambda: not any(os.path.exists(workdir) for _, workdir in told(marker)))
    finally:
        kit.kill()
        kit.wait()

    assert kit.returncode != 0


@pytest.mark.realtime
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux: elsewhere orphans cannot be followed")
def test_kit_that_breaks_in_a_measure_leaves_nobody(
    conform: Conform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    marker = tmp_path / "pids"

    def broken(*_: object) -> None:
        until(lambda: len(told(marker)) == 3)
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr(duty, "change_duties", broken)

    report = conform(bundles.runner(FAMILY, prelude=f"MARKER = {str(marker)!r}"), only=["duty"])

    assert report.exit == 3
    assert "the kit itself failed" in report.checks[-1].detail
    assert len(told(marker)) == 3
    assert living(marker) == []
