"""A clock that ticks at every read, and a control object that lives on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from oarbank_sdk.control import Stopped
from oarbank_sdk.duty import Duty


class VirtualClock:
    """Seconds that pass when somebody waits or works, and by one tick at every read.

    A clock that stands still between reads hides a governor that never waits.
    """

    def __init__(self, start: float = 7.25, tick_s: float = 1e-9) -> None:
        self.now = start
        self.tick_s = tick_s

    def __call__(self) -> float:
        self.now += self.tick_s
        return self.now


class ScriptedControl:
    """A `Control` whose documents arrive at given moments of a virtual clock.

    `script` holds (seconds after the start, changes). `late_s` is how much every wait oversleeps.
    """

    def __init__(
        self, clock: VirtualClock, duty: float | None, script: list[tuple[float, dict[str, Any]]] | None = None
    ) -> None:
        self.clock = clock
        self.gpu_duty = duty
        self.seq = 0
        self.stop = self.pause = False
        self.paused_s = 0.0
        self.late_s: Callable[[], float] = lambda: 0.0
        self.waits: list[float] = []
        self._script = [(clock.now + at, change) for at, change in script or []]

    def check(self) -> None:
        self._apply()
        if self.stop:
            raise Stopped("stop")

    def safe_point(self) -> None:
        self.check()
        while self.pause:
            before = self.clock.now
            assert self._script, "paused for ever"
            self.clock.now = max(self._script[0][0], before)
            self.paused_s += self.clock.now - before
            self.check()

    def wait(self, timeout_s: float, *, newer_than: int | None = None) -> bool:
        assert timeout_s >= 0
        self.waits.append(timeout_s)
        end = self.clock.now + timeout_s
        if self._script and self._script[0][0] <= end:
            self.clock.now = max(self.clock.now, self._script[0][0])
            self._apply()
            return True
        self.clock.now = end + self.late_s()
        return False

    def _apply(self) -> None:
        while self._script and self._script[0][0] <= self.clock.now:
            _, change = self._script.pop(0)
            self.seq += 1
            # A document is the whole state: what it does not say is lifted.
            self.gpu_duty = change.get("gpu_duty")
            self.stop = change.get("stop", False)
            self.pause = change.get("pause", False)


class Bench:
    """A runner on virtual time: units of given length, host work between them."""

    def __init__(self, duty=None, script=None, *, tick_s=1e-9, events=None, **options) -> None:
        self.clock = VirtualClock(tick_s=tick_s)
        self.zero = self.clock.now
        self.ctl = ScriptedControl(self.clock, duty, script)
        self.duty = Duty(self.ctl, events=events, clock=self.clock, **options)
        self.units: list[tuple[float, float]] = []  # start and end, seconds after zero

    def unit(self, seconds: float, host_s: float = 0.0, label: str | None = None) -> float:
        with self.duty.unit(label):
            start = self.clock.now - self.zero
            self.clock.now += seconds
        self.units.append((start, self.clock.now - self.zero))
        self.clock.now += host_s
        return start

    def run(self, count: int, seconds: float, host_s: float = 0.0) -> list[float]:
        return [self.unit(seconds, host_s) for _ in range(count)]

    def gaps(self) -> list[float]:
        return [later[0] - earlier[1] for earlier, later in zip(self.units, self.units[1:], strict=False)]

    def busiest(self, window_s: float) -> float:
        """The largest share of any window of this length that lies within the run."""
        end = self.units[-1][1]
        starts = [t for unit in self.units for t in (unit[0], unit[1] - window_s) if 0 <= t <= end - window_s]
        busy = [sum(max(0.0, min(b, t + window_s) - max(a, t)) for a, b in self.units) for t in starts]
        return max(busy, default=0.0) / window_s


def near(value: float) -> object:
    return pytest.approx(value, abs=1e-6)
