"""The GPU time of a process tree, over one or several readers at once.

The shell around `counters`: it asks the tree who belongs to the job, the readers what they found, and adds up. A
process is a known zero only where a reader that can read here looked at it; a device that no reader here can tell of
makes the process that holds it unknown. It holds no rule about counters of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from oarbank_agent_check.counters import NOTHING, Gain, GainBook, add_gains, untold
from oarbank_agent_check.gpu_readings import GpuReader, GpuReading
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, ProcessTime, Quantity, Sample, Unknown, sample_of

SEVERAL = "gpu"
"""The `source` of a sample that several readers told of together; `detail` names them."""

NOBODY = Unknown("no source can read GPU time here.")
NONE_HERE = Unknown("no GPU reader was given. Name one, or leave the choice to this system.")


class Members(Protocol):
    """Who belongs to the job: a `ProcessTree`, or a stand-in for one."""

    def refresh(self) -> tuple[ProcessKey, ...]:
        """Give the living members."""

    def unreadable(self) -> dict[int, Unknown]:
        """Give the members that cannot even be identified."""


class GpuMeter:
    """Meters a tree, as a `Source`; it closes the readers at the end. One thread at a time may call it.

    Which readers can read here is asked once, at the start. `name` is the reader's where only one can, else `gpu`.
    """

    def __init__(self, tree: Members, readers: Sequence[GpuReader]) -> None:
        self._tree = tree
        self._readers = tuple(readers)
        self._meters: list[tuple[GpuReader, GainBook]] = []
        self._hindered: dict[str, Unknown] = {}
        self._living: tuple[ProcessKey, ...] = ()
        self._gains: dict[ProcessKey, Gain] = {}  # since the last sample, of those that ended too
        self._hidden: dict[int, Unknown] = {}
        self._sampled_s: float | None = None
        self._clock_began_s = 0.0  # Unix seconds
        self._open = True
        self.name = self._readers[0].name if len(self._readers) == 1 else SEVERAL
        self.reads = "; ".join(reader.reads for reader in self._readers)

    def hindrance(self) -> Unknown | None:
        """Say why no reader can read here, each with its reason; None when one can. After `start` it is settled."""
        if self._sampled_s is None:
            self._ask_readers()
        if self._meters:
            return None
        why = "; ".join(f"{name}: {why.reason.rstrip('.')}" for name, why in self._hindered.items())
        return Unknown(f"{why}.") if why else NONE_HERE

    def start(self) -> None:
        """Ask which readers can read here and take the baseline; raises RuntimeError when it was started before."""
        if self._sampled_s is not None:
            raise RuntimeError("GPU meter: start() works once; make another GpuMeter for another run")
        self._ask_readers()
        self._clock_began_s = time.time() - _clock_s()
        self._sampled_s = time.monotonic()
        self._read()
        self._begin_window()

    def look(self) -> None:
        """Read in between, for the next sample: a process that ends soon loses only what it did since the last look."""
        self._begun()
        self._read()

    def sample(self) -> Sample:
        """Say what was used since `start` or the last sample.

        Raises RuntimeError before `start`, and ValueError when no time has passed since the last sample.
        """
        before_s = self._begun()
        now_s = time.monotonic()
        if not now_s > before_s:
            raise ValueError("GPU meter: no time has passed since the last sample. Wait before asking again.")
        self._read()
        self._sampled_s = now_s
        gains, hidden = self._gains, self._hidden
        self._begin_window()
        whole = add_gains(gains.values())
        window_s = now_s - before_s
        fault = self.hindrance()
        busy: Quantity = fault or 0
        if fault is None and not isinstance(whole.busy, Unknown):  # else its processes say why
            busy = whole.busy
        sample = sample_of(
            t=time.time(),
            window_s=window_s,
            busy=busy,
            processes=[ProcessTime(key.pid, key.start, NOBODY if fault else gain.busy) for key, gain in gains.items()],
            hidden=hidden,
            source=self.name,
            detail=", ".join(reader.name for reader, _ in self._meters) or "none",
        )
        if sample.share is None or whole.low is None or whole.high is None:
            return sample
        return replace(sample, low=whole.low / NS_PER_S / window_s, high=whole.high / NS_PER_S / window_s)

    def stop(self) -> None:
        """Close the readers. A second call does nothing."""
        if self._open:
            self._open = False
            for reader in self._readers:
                reader.close()

    def _ask_readers(self) -> None:
        self._meters, self._hindered = [], {}
        for reader in self._readers:
            try:
                why = reader.hindrance()
            except Exception as fault:  # readers may be other people's code
                why = _broke(reader, fault)
            if why is None:
                self._meters.append((reader, GainBook()))
            else:
                self._hindered[reader.name] = why
        if len(self._meters) == 1:
            self.name = self._meters[0][0].name

    def _begun(self) -> float:
        if self._sampled_s is None:
            raise RuntimeError("GPU meter: start() must come first")
        return self._sampled_s

    def _begin_window(self) -> None:
        # Only the living ones belong to the next window.
        self._gains = dict.fromkeys(self._living, NOTHING)
        self._hidden = self._tree.unreadable()

    def _read(self) -> None:
        """Read everybody once and add what was gained."""
        self._living = members = self._tree.refresh()
        self._hidden.update(self._tree.unreadable())
        told = frozenset(reader.name for reader, _ in self._meters)
        found = [self._read_with(reader, book, members) for reader, book in self._meters]
        for key in members:
            parts = [self._gains.get(key, NOTHING)]
            for reading, gains in found:
                if gains[key] is not NOTHING:
                    parts.append(gains[key])
                fault = untold(reading.elsewhere.get(key.pid, ()), told, self._hindered)
                if fault is not None:
                    parts.append(Gain(fault))
            self._gains[key] = parts[0] if len(parts) == 1 else add_gains(parts)

    def _read_with(
        self, reader: GpuReader, book: GainBook, members: tuple[ProcessKey, ...]
    ) -> tuple[GpuReading, Mapping[ProcessKey, Gain]]:
        try:
            reading = reader.read(members)
        except Exception as fault:  # the one fence: a reader that broke must not read as zero
            why = _broke(reader, fault)
            reading = GpuReading(time.monotonic(), unknown={key.pid: why for key in members})
        return reading, book.add(reading, members, wall_s=self._clock_began_s + _clock_s()).processes


def _clock_s() -> float:
    """Give the seconds of the clock that start times come from: on Linux one that nobody sets and that never stops."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()


def _broke(reader: GpuReader, fault: Exception) -> Unknown:
    return Unknown(f"the reader {reader.name} broke ({type(fault).__name__}: {str(fault)[:80]}). Report it.")
