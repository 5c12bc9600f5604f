"""For all tests: Ctrl-C works in the processes they start, and those about real time run one after another."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A bound on the clock would fail on a busy machine, and say nothing of what is tested.
settings.register_profile("no-clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no-clock")

# Also where whoever runs pytest has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where tests run side by side, give the files about real time to one worker, and the others what is left.

    pytest-xdist's own `--dist loadgroup` would do, but its mark is lost on pytest 9.2 (seen with pytest-xdist 3.8.0).
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneForRealTime(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "real time" if is_about_real_time(nodeid.partition("::")[0]) else nodeid

    return OneForRealTime(config, log)


_about_real_time: dict[str, bool] = {}


def is_about_real_time(file: str) -> bool:
    """Say whether a file of tests, relative to the checkout, marks any of them `realtime`."""
    if file not in _about_real_time:
        _about_real_time[file] = "pytest.mark.realtime" in (ROOT / file).read_text(encoding="utf-8")
    return _about_real_time[file]
