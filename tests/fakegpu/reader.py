"""The fake GPU as a source of GPU time: what a driver's counters are to a real device.

Finds the device by the environment variable OARBANK_FAKE_GPU, the path of its socket. `reading` is pure; the class
asks.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from oarbank_agent_check.gpu_readings import Counter, GpuReading
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, Unknown
from tests.fakegpu.client import Client, DeviceLost

VARIABLE = "OARBANK_FAKE_GPU"
SPEC = "tests.fakegpu.reader:FakeGpuReader"
HIDDEN = Unknown("the fake GPU does not show this process. Ask it for another one.")


def reading(answer: Mapping[str, Any], members: Collection[ProcessKey]) -> GpuReading:
    """Give what the device's answer says of some processes."""
    pids = {member.pid for member in members}
    counters = (
        Counter(one["pid"], f"fake-gpu:{one['client']}", "all", one["busy_ns"])
        for one in answer["clients"]
        if one["pid"] in pids
    )
    unknown = {pid: HIDDEN for pid in answer["hidden"] if pid in pids}
    return GpuReading(answer["t_ns"] / NS_PER_S, tuple(counters), unknown=unknown, dips="new")


class FakeGpuReader:
    """Reads one fake GPU; a `GpuReader`."""

    name = "fake-gpu"
    reads = "the time that each client's buffers ran on a fake GPU, from the fake GPU itself"

    def __init__(self) -> None:
        self._client: Client | None = None
        self._read_s = 0.0

    def hindrance(self) -> Unknown | None:
        """Say why there is no device to read."""
        try:
            self._ask()
        except DeviceLost as lost:
            return Unknown(f"{lost}. Start one, and name its socket in {VARIABLE}.")
        return None

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        """Read the members once; nobody can be read when the device is gone."""
        try:
            found = reading(self._ask(), members)
        except DeviceLost as lost:
            return GpuReading(self._read_s, unknown={member.pid: Unknown(f"{lost}.") for member in members})
        self._read_s = found.t
        return found

    def close(self) -> None:
        """Hang up."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _ask(self) -> Mapping[str, Any]:
        if self._client is None:
            self._client = Client(os.environ.get(VARIABLE, ""))
        try:
            return self._client.ask({"counters": True})
        except DeviceLost:
            self.close()  # another device may listen there the next time
            raise
