"""GPU readers for tests of commands: `OARBANK_GPU_READER=tests.agent_check.made_reader:Steady`."""

from __future__ import annotations

import time
from collections.abc import Collection

from oarbank_agent_check.gpu_readings import Added, GpuReading
from oarbank_agent_check.readings import ProcessKey, Unknown


class Steady:
    """Every process keeps the GPU busy at a share of about 0.8, of which only 0.02 is sure."""

    name = "steady"
    reads = "nothing: it says 0.8"
    low = 0.02

    def __init__(self) -> None:
        self._before = time.monotonic()

    def hindrance(self) -> Unknown | None:
        return None

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        before, self._before = self._before, time.monotonic()
        ns = (self._before - before) * 1e9
        added = (Added(key.pid, round(0.8 * ns), round(self.low * ns), round(ns)) for key in members)
        return GpuReading(self._before, added=tuple(added))

    def close(self) -> None:
        """Nothing is open."""


class Greedy(Steady):
    """The same, and sure of it."""

    low = 0.8


class Blind(Steady):
    """Can read here, and can tell nothing of any process."""

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        return GpuReading(time.monotonic(), unknown={key.pid: Unknown("it is dark. Light it.") for key in members})


class Broken(Steady):
    """Breaks when it is asked whether it can read."""

    def hindrance(self) -> Unknown | None:
        raise RuntimeError("it fell apart")
