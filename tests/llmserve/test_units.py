"""Units on virtual time: a load in bursts, and stops that come inside a call which no exception may cross."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarbank_llmserve.engines import BadModel, LoadStopped, OutOfMemory, PromptFault, StepGivenUp
from oarbank_llmserve.units import LOAD_BURST_S, Units
from oarbank_sdk.control import Stopped
from tests.llmserve.fakes import FakeControl, FakeDuty, VirtualClock


class Load:
    """A model that loads in so many steps of `step_s`, through a library: `going` is asked in between."""

    def __init__(self, steps: int = 40, step_s: float = 0.01, duty: float | None = 0.3, longest_s: float | None = None):
        self.clock = VirtualClock()
        self.duty = FakeDuty(self.clock, duty)
        self.units = Units(self.duty, FakeControl(), longest_s=longest_s, clock=self.clock)
        self.asked: list[bool] = []
        self._steps, self._step_s = steps, step_s

    def load(self) -> str:
        for _ in range(self._steps):
            self.clock.now_s += self._step_s
            self.asked.append(self.units.going())
            if not self.asked[-1]:
                raise LoadStopped("stopped while the model loaded")
        return "model"

    def run(self) -> str:
        return self.units.run("load", self.load)


@pytest.mark.parametrize(
    ("longest_s", "burst_s"),
    [(None, LOAD_BURST_S), (0.02, 0.02), (1.0, LOAD_BURST_S)],
    ids=["by itself", "cut", "long"],
)
def test_load_breathes_so_that_it_holds_the_duty_and_leaves_no_debt(longest_s: float | None, burst_s: float) -> None:
    load = Load(longest_s=longest_s)
    began_s = load.clock.now_s

    assert load.run() == "model"
    units_s = [seconds for _, seconds in load.duty.units]
    assert max(units_s) <= burst_s + 0.01
    assert sum(units_s) == pytest.approx(0.4, abs=0.01)
    assert sum(units_s) / (load.clock.now_s - began_s) == pytest.approx(0.3, abs=0.05)
    assert load.units.spell.longest_unit_s == pytest.approx(max(units_s), abs=1e-3)


def raising(fault: BaseException, entered: int) -> Callable[[int], None]:
    def at_entry(now: int) -> None:
        if now == entered:
            raise fault

    return at_entry


@pytest.mark.parametrize("fault", [Stopped("stop in force"), KeyboardInterrupt()], ids=["a stop", "Ctrl-C"])
def test_what_comes_in_a_breath_ends_the_load_and_is_raised_behind_it(fault: BaseException) -> None:
    load = Load()
    load.duty.at_entry = raising(fault, 3)

    with pytest.raises(type(fault)):
        load.run()
    assert load.asked.count(False) == 1
    assert not load.duty.open
    assert len(load.duty.units) == 2


def test_engine_that_ends_well_in_spite_of_a_stop_is_stopped_all_the_same() -> None:
    load = Load()
    load.duty.at_entry = raising(Stopped("stop in force"), 2)

    with pytest.raises(Stopped):
        load.units.run("decode", load.units.breathe)


def test_once_stopped_no_breath_begins_a_unit() -> None:
    load = Load()
    load.duty.at_entry = raising(Stopped("stop in force"), 2)

    def call() -> None:
        assert not load.units.breathe()
        assert not load.units.breathe()
        assert not load.units.going()
        raise StepGivenUp

    with pytest.raises(Stopped):
        load.units.run("decode", call)
    assert len(load.duty.units) == 1


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (BadModel("no model"), BadModel),
        (OutOfMemory("full"), OutOfMemory),
        (MemoryError(), OutOfMemory),
        (ValueError("x\nlast"), PromptFault),
        (StepGivenUp(), PromptFault),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_faults_of_an_engine(fault: BaseException, told: type[BaseException]) -> None:
    load = Load()

    def call() -> None:
        raise fault

    with pytest.raises(told):
        load.units.run("load", call)
    assert not load.duty.open
    assert load.units.run("load", lambda: 7) == 7
