"""A program's way to the fake GPU: submit a buffer, wait for it. Works alone, copied beside a runner: standard library.

One `Client` belongs to one thread of one process; a fork's child makes its own.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any


class DeviceLost(RuntimeError):
    """The fake GPU is gone, or refused what it was told."""


@dataclass(frozen=True, slots=True)
class Ran:
    """When a buffer ran, in ns of the machine's monotonic clock."""

    start_ns: int
    end_ns: int

    @property
    def busy_s(self) -> float:
        """Give the seconds that the device spent on it: what `unit.busy()` takes."""
        return (self.end_ns - self.start_ns) / 1e9


class Client:
    """One client of the device at the socket `path`."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except OSError as refused:
            self._socket.close()
            raise DeviceLost(f"{path}: must be the socket of a fake GPU; {refused}") from None
        self._lines = self._socket.makefile("rb")
        self._last = 0

    def submit(self, seconds: float) -> int:
        """Queue a buffer of so many seconds at full clock, and give its ticket at once."""
        self._send({"submit": round(seconds * 1e9)})
        self._last += 1
        return self._last

    def wait(self, ticket: int) -> Ran:
        """Wait until a buffer has ended."""
        answer = self.ask({"wait": ticket})
        return Ran(answer["start_ns"], answer["end_ns"])

    def run(self, seconds: float) -> Ran:
        """Submit a buffer and wait for its end."""
        self._last += 1
        answer = self.ask({"submit": round(seconds * 1e9)}, {"wait": self._last})
        return Ran(answer["start_ns"], answer["end_ns"])

    def synchronize(self) -> None:
        """Wait until everything that was submitted has ended."""
        if self._last:
            self.wait(self._last)

    def ask(self, *messages: dict[str, Any]) -> dict[str, Any]:
        """Say something that is answered with one line, and give that."""
        self._send(*messages)
        try:
            line = self._lines.readline()
        except OSError:
            line = b""
        answer = json.loads(line) if line else {"fault": "it has ended"}
        if "fault" in answer:
            raise DeviceLost(f"fake GPU: {answer['fault']}")
        return answer

    def close(self) -> None:
        """Vanish; what waits is dropped."""
        self._lines.close()
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _send(self, *messages: dict[str, Any]) -> None:
        try:
            self._socket.sendall(b"".join(json.dumps(one).encode() + b"\n" for one in messages))
        except OSError as gone:
            raise DeviceLost(f"fake GPU: {gone}") from None
