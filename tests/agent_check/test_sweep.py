"""The loop of a sweep on a scripted clock: which windows it takes, in which order, and what it makes of mishaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from oarbank_agent_check import sweep as sweep_module
from oarbank_agent_check import windows
from oarbank_agent_check.certify import Certifier, Rules
from oarbank_agent_check.progress import Count
from oarbank_agent_check.readings import Sample, UnknownProcess
from oarbank_agent_check.sweep import Interrupted, Pace, Sweep
from oarbank_agent_check.sweep_work import WorkEnded
from oarbank_agent_check.windows import Pair

PACE = Pace(window_s=10.0, settle_s=2.0, job_s=1000.0)


@dataclass
class Scripted:
    """A machine on paper: its clock moves while the work is looked at; the program draws 60 frames a second."""

    harm: float = 0.01
    ends_after_s: float = 1e9
    unreadable: bool = False
    counter: Callable[[float], float | None] = lambda frames: frames
    kind: Literal["file", "command"] = "file"
    t: float = 50.0
    frames: float = 0.0
    level: float | None = None
    began: float | None = None
    jobs: int = 0
    said: list[str] = field(default_factory=list)
    held_s: float = 0.0
    sampled: float = 50.0

    # the clock
    def monotonic(self) -> float:
        self.t += 1e-4
        return self.t

    def time(self) -> float:
        return 1e9 + self.t

    # the work
    @property
    def runs(self) -> bool:
        return self.began is not None

    def age_s(self) -> float:
        return 0.0 if self.began is None else self.t - self.began

    def start(self, level: float, look: Callable[[], None]) -> None:
        look()
        self.jobs, self.began, self.level = self.jobs + 1, self.t, level

    def hold(self, level: float) -> None:
        self.level = level

    def pause(self, level: float) -> None:
        self.level = None

    def check(self) -> None:
        if self.age_s() > self.ends_after_s:
            raise WorkEnded("it ended with status 0 after some time")
        self.t += 0.05
        self.frames += 0.05 * 60 * (1 - (0 if self.level is None else self.harm))
        self.held_s += 0.05 * (self.level or 0.0)

    def sample(self) -> Sample:
        window_s, self.sampled = self.t - self.sampled + 1e-9, self.t
        held, self.held_s = self.held_s, 0.0
        if self.unreadable:
            unknown = (UnknownProcess(None, "the driver is gone"),)
            return Sample(self.t, window_s, (1,), None, None, "nvml", unknown)
        return Sample(self.t, window_s, (1,), held / window_s, held, "nvml")

    def end(self) -> None:
        self.began = None

    # the counter
    def read(self) -> Count:
        value = self.counter(self.frames)
        return Count(self.monotonic(), value, None if value is not None else "it is gone")


def search(
    machine: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    seed: int = 7,
    pace: Pace = PACE,
    look: Callable[[], None] = lambda: None,
) -> tuple[Certifier, list[Pair]]:
    monkeypatch.setattr(sweep_module, "time", machine)
    pairs: list[Pair] = []
    certifier = Certifier(Rules(levels=(0.1, 0.2), target=0.05))
    Sweep(certifier, machine, machine, pace, seed, look=look, tell=pairs.append, say=machine.said.append).run()
    return certifier, pairs


def test_harmless_work_is_certified_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Scripted()

    found, pairs = search(machine, monkeypatch)

    assert found.level == 0.2
    assert not machine.runs
    assert all(windows.fault(pair) is None for pair in pairs)
    assert windows.plain_harm(pairs) == pytest.approx(0.01, abs=1e-3)
    assert pairs[-1].running.held == pytest.approx(0.2, abs=0.01)
    assert pairs[-1].paused.held == 0.0


def test_coins_choose_the_order_and_the_seed_the_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = {}
    for seed in (1, 2):
        again = [[pair.first.kind for pair in search(Scripted(), monkeypatch, seed)[1]] for _ in range(2)]
        assert again[0] == again[1]
        assert set(again[0]) == {"paused", "running"}
        orders[seed] = again[0]

    assert orders[1] != orders[2]


def test_what_happens_while_it_settles_is_in_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    _, pairs = search(Scripted(), monkeypatch)

    for pair in pairs:
        assert pair.second.t - pair.first.t == pytest.approx(12.0, abs=0.2)
        assert all(window.seconds == pytest.approx(10.0, abs=0.1) for window in pair.windows)


def test_job_that_ends_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Scripted(ends_after_s=110.0)

    found, pairs = search(machine, monkeypatch)

    assert found.level == 0.2
    assert machine.jobs > 5
    assert all(windows.fault(pair) is None for pair in pairs)
    assert any("another one takes its place" in line for line in machine.said)


def test_jobs_that_never_last_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Scripted(ends_after_s=15.0)

    found, pairs = search(machine, monkeypatch)

    assert (found.level, pairs, machine.jobs) == (None, [], 3)
    assert "the job must last" in (found.why or "")
    assert not machine.runs


def test_job_is_replaced_before_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Scripted()

    found, _ = search(machine, monkeypatch, pace=Pace(10.0, 2.0, job_s=100.0))

    assert found.level == 0.2
    assert machine.jobs >= 5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        pytest.param({"counter": lambda frames: 5.0}, "stood still", id="a counter that stands still"),
        pytest.param({"counter": lambda frames: 1e9 - frames}, "went back", id="a counter that goes back"),
        pytest.param({"counter": lambda frames: None}, "could not be read: it is gone", id="a counter that is gone"),
        pytest.param({"unreadable": True}, "the driver is gone", id="work that nobody can measure"),
    ],
)
def test_what_cannot_be_told_is_never_fine(changes: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, pairs = search(Scripted(**changes), monkeypatch)

    assert found.level is None
    assert [test.verdict for test in found.tests] == ["void"]
    assert all(why in (windows.fault(pair) or "") for pair in pairs)


def test_interrupt_passes_through_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Scripted()

    def look() -> None:
        if machine.t > 80:
            raise Interrupted("Ctrl-C")

    with pytest.raises(Interrupted, match="Ctrl-C"):
        search(machine, monkeypatch, look=look)
    assert machine.t < 81
