"""Modules whose runners use the fake GPU: `build` writes one, `gpu_stand_in.py` is the honest runner in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.conformkit import bundles

HERE = Path(__file__).parent

SOCKET = "FAKE_GPU_SOCKET"
"""What the manifest tells the runner: where its device is."""

HONEST = (HERE / "gpu_stand_in.py").read_text()


def build(folder: Path, gpu: str, runner: str = HONEST, **changes: Any) -> Path:
    """Write a bundle as `bundles.build` does, whose runner finds the fake GPU at the socket `gpu`."""
    bundles.build(folder, runner, env={SOCKET: gpu}, **changes)
    shutil.copy(HERE / "gpu_stand_in.py", folder / "gpu_stand_in.py")
    shutil.copy(HERE.parent / "client.py", folder / "gpu_client.py")
    return folder
