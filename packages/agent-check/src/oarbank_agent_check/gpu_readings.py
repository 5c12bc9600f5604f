"""What a GPU source hands over at one moment: raw counters, or time that was added since the last moment.

Readers of every system and vendor fill these; `counters` turns them into gains of a job. They hold what was found,
unjudged: an accumulated value may stand still, dip, or belong to a client that several processes share. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from oarbank_agent_check.readings import ProcessKey, Unknown


class NotARecording(ValueError):
    """These bytes are no recording of the kind they were taken for; the text says what must hold and what was found."""


@dataclass(frozen=True, slots=True)
class Counter:
    """One accumulating counter of one client, on one engine, as one process shows it.

    `client` is unique on this machine for as long as the client lives: device and client id, a registry id, an
    instance name. `value` is in ns or, where `total` is given, in ticks of the device's own clock, of which `total`
    had passed. `capacity` is how many engines stand behind the name, so how many seconds a second it may grow. An
    empty `engine` says that the client is there and showed no engine at all.
    """

    pid: int
    client: str
    engine: str
    value: int
    total: int | None = None
    capacity: int = 1
    device: str = ""
    """Whose clock `total` is: clients of one device share it. Empty: the client's own."""
    t: float | None = None
    """When this counter was read, in monotonic seconds; None: at the reading's `t`."""


@dataclass(frozen=True, slots=True)
class Added:
    """Time that a process used since the last reading, for sources that tell windows and no accumulated value, in ns.

    `low` and `high` bound it where the source's resolution is coarse (point samples).
    """

    pid: int
    busy_ns: int
    low_ns: int | None = None
    high_ns: int | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """All that one source could read of some processes at the moment `t` (monotonic seconds, of this source's read).

    `unknown` names the processes whose time, or a part of it, could not be read, each with a reason that a person can
    act on. `outside` are clients that a process outside the job holds too. `gone` ended between listing and reading.
    A process in none of these was read and holds no client: a known zero.
    """

    t: float
    counters: tuple[Counter, ...] = ()
    added: tuple[Added, ...] = ()
    unknown: Mapping[int, Unknown] = field(default_factory=dict)
    outside: frozenset[str] = frozenset()
    gone: frozenset[int] = frozenset()
    dips: Literal["hold", "new"] = "hold"
    """What a smaller value means: a counter that catches up later (DRM), or a new one under the same name (PDH)."""
    elsewhere: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Processes that hold a device of which another source must tell (`{4321: {"nvml"}}`): no zero from this one."""
    asleep: frozenset[int] = frozenset()
    """Processes that hold a sleeping device, which was not woken to be read: it ran nothing since the last reading."""


class GpuReader(Protocol):
    """The file of a source that touches the machine."""

    name: str
    """The `source` of its samples, as in `gpu-sample-1`."""

    reads: str
    """What it reads, in one sentence for a person."""

    def hindrance(self) -> Unknown | None:
        """Say why it can't read here at all and what to do; None when it can."""

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        """Read the members once. What can't be read is `unknown` in the reading; it raises nothing for that."""

    def close(self) -> None:
        """Let go of everything that was opened; a second call does nothing."""


@runtime_checkable
class Recorder(Protocol):
    """What a reader may offer besides: its untouched readings, as `oarbank-agent-check recording` reads them."""

    def raw(self, members: Collection[ProcessKey]) -> Any:
        """Read the members once and give what was found, without command lines and user names."""

    def recording(self, raws: Sequence[Any]) -> Mapping[str, bytes]:
        """Put raw readings together: the contents of files by name. Empty where there was nothing to read."""
