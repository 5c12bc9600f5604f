"""What a test needs of its system, as marks whose reason names the systems that have it."""

from __future__ import annotations

import sys

import pytest

RUNNERS = "a runner is started"


def posix(what: str = RUNNERS) -> pytest.MarkDecorator:
    """Skip on Windows, saying what is missing there."""
    return pytest.mark.skipif(sys.platform == "win32", reason=f"needs Linux or macOS: {what}")


def linux(what: str) -> pytest.MarkDecorator:
    """Skip everywhere but on Linux, saying what is missing there."""
    return pytest.mark.skipif(not sys.platform.startswith("linux"), reason=f"needs Linux: {what}")
