"""What a pair of windows says, and when it says nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from oarbank_agent_check import windows
from oarbank_agent_check.windows import Pair, Window

PAUSED = Window("paused", 0.0, 10.0, 600, 0.0)
RUNNING = Window("running", 12.0, 10.0, 540, 0.29)


def pair(paused: dict[str, object] | None = None, running: dict[str, object] | None = None) -> Pair:
    return Pair(0.3, replace(PAUSED, **(paused or {})), replace(RUNNING, **(running or {})))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("paused", "running", "why"),
    [
        pytest.param({}, {}, None, id="all is well"),
        pytest.param({}, {"progress": 0}, None, id="it stood still beside the work: harm, not a fault"),
        pytest.param({}, {"held": 0.11}, None, id="units of 1 ms behind frames of 8 ms"),
        pytest.param({"progress": 0}, {}, "stood still while the work was paused", id="the counter stands still"),
        pytest.param({"progress": 0}, {"progress": 0}, "stood still", id="the program has ended"),
        pytest.param({"progress": None}, {}, "could not be read", id="no baseline"),
        pytest.param({}, {"progress": None}, "could not be read", id="no counter beside the work"),
        pytest.param({}, {"progress": -5}, "could not be read", id="it went back"),
        pytest.param({"fault": "it went back"}, {}, "it went back", id="the fault is told as it was found"),
        pytest.param({}, {"held": None}, "could not be measured", id="nobody knows what the work held"),
        pytest.param({"held": None}, {}, "could not be measured", id="nobody knows whether it was paused"),
        pytest.param({}, {"held": 0.1}, "not held: the work took 0.100 of 0.300", id="an idle job proves nothing"),
        pytest.param({"held": 0.2}, {}, "went on while it was paused", id="a job that does not pause"),
    ],
)
def test_pair_counts_or_says_why_not(paused: dict[str, object], running: dict[str, object], why: str | None) -> None:
    found = windows.fault(pair(paused, running))

    assert (found is None) if why is None else why in (found or "")


def test_slowdown_is_the_same_in_either_order() -> None:
    forward = pair()
    backward = Pair(0.3, forward.running, forward.paused)

    assert windows.slowdown(forward) == windows.slowdown(backward) == pytest.approx(math.log(600 / 540))
    assert windows.harm_of(windows.slowdown(forward)) == pytest.approx(0.1)
    assert windows.slowdown_of(0.1) == pytest.approx(math.log(600 / 540))


def test_standstill_beside_the_work_is_the_largest_slowdown() -> None:
    assert windows.slowdown(pair(running={"progress": 0})) == windows.LARGEST
    assert windows.slowdown(pair(running={"progress": 1e-9})) == windows.LARGEST


def test_plain_harm_weighs_windows_by_their_length() -> None:
    longer = pair(running={"seconds": 30.0, "progress": 1620})

    assert windows.plain_harm([pair(), longer]) == pytest.approx(0.1)
