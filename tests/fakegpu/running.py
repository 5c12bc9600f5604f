"""A fake GPU for as long as a block lasts, and the hand of a test on it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakegpu.client import Client

ROOT = Path(__file__).parents[2]
SOCKET = "gpu"


class FakeGpu:
    """A running fake GPU: `path` is its socket, `pid` its process."""

    def __init__(self, path: str, pid: int) -> None:
        self.path, self.pid = path, pid

    def slow_down(self, factor: float) -> None:
        """Make buffers take `factor` times as long, from the next one that starts."""
        self._ask({"slowness": factor})

    def hide(self, pid: int) -> None:
        """Show no more of what this process does."""
        self._ask({"hide": pid})

    def counters(self) -> dict[str, Any]:
        """Give what a reader gets."""
        return self._ask({"counters": True})

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        with Client(self.path) as client:
            return client.ask(message)


@contextmanager
def fake_gpu() -> Generator[FakeGpu]:
    """Start a fake GPU and end it with the block; it also ends when this process does."""
    # A folder of its own and not the test's: the path of a Unix socket has room for some hundred bytes only.
    with tempfile.TemporaryDirectory(prefix="fakegpu-") as folder, start(Path(folder)) as daemon:
        yield FakeGpu(os.path.join(folder, SOCKET), daemon.pid)


@contextmanager
def start(folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """Start the daemon with its socket in a folder, and wait until it takes clients."""
    command = [sys.executable, "-S", "-m", "tests.fakegpu.daemon", str(folder / SOCKET)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdin is not None
        assert daemon.stdout.readline() == b"ready\n"
        yield daemon
        daemon.stdin.close()
