"""Where busy time can be read from: the protocol that every source follows.

A source is two or three files: `<name>_read.py` touches the machine and hands over what it found, `<name>_parse.py`
is pure and turns it into gains, so every parser is tested on every system. A source must never guess: what it cannot
read is `Unknown` with a reason.
"""

from __future__ import annotations

from typing import Protocol

from oarbank_agent_check.readings import Sample


class Source(Protocol):
    """One way to learn how busy a group of processes kept a device."""

    name: str
    """The `source` of its samples, as in `gpu-sample-1`."""

    reads: str
    """What it reads, in one sentence for a person."""

    def start(self) -> None:
        """Take the baseline; nothing before this moment is ever counted."""

    def sample(self) -> Sample:
        """Say what was used since `start` or the last sample."""

    def stop(self) -> None:
        """Let go of everything that was opened; a second call does nothing."""
