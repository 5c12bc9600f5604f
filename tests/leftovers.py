"""What runs on although it should have ended."""

from __future__ import annotations

from pathlib import Path

import psutil


def running_below(folder: Path) -> list[int]:
    """Processes that run a program from a folder."""
    listed = [(process.pid, process.info["cmdline"]) for process in psutil.process_iter(["cmdline"])]
    return [pid for pid, words in listed if words and str(folder) in " ".join(words)]
