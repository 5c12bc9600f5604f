"""Shared by the tests of the SDK."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.sdk.agent import Agent


@pytest.fixture
def agent(tmp_path):
    if sys.platform == "win32":
        pytest.skip("needs Linux or macOS: nudges are signals")
    yield Agent(tmp_path)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
