"""Every source of busy time, whether it can read on this machine and, if not, why and what to do.

It asks the readers and shows what they say; it decides nothing about them and reads no process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.process_table import NoProcesses, system_table
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.sources.cpu_threads_read import system_reader
from oarbank_agent_check.sources.gpu import OWN, readers


@dataclass(frozen=True, slots=True)
class SourceHere:
    """One source on this machine; `why_not` is None where it can read."""

    name: str
    reads: str
    why_not: str | None
    gpu: bool


def all_readers() -> list[GpuReader]:
    """Give a reader of every source, whatever system it is for, and those of other packages. Raises UnknownReader."""
    own = [reader for name in OWN for reader in readers(name)]
    known = {reader.name for reader in own}
    return own + [reader for reader in readers() if reader.name not in known]


def sources_here(found: Iterable[GpuReader]) -> list[SourceHere]:
    """Ask each reader, and close it; the CPU's comes first."""
    return [_cpu(), *(_ask(reader) for reader in found)]


def _cpu() -> SourceHere:
    try:
        system_table()
    except NoProcesses as fault:
        return SourceHere(CpuThreads.name, CpuThreads.reads, str(fault), gpu=False)
    reader = system_reader()
    reader.close()
    return SourceHere(CpuThreads.name, f"{CpuThreads.reads} ({reader.clock})", None, gpu=False)


def _ask(reader: GpuReader) -> SourceHere:
    try:
        why = reader.hindrance()
        reason = None if why is None else why.reason
    except Exception as fault:  # readers may be other people's code
        reason = f"the reader broke ({type(fault).__name__}: {str(fault)[:80]}). Report it."
    finally:
        reader.close()
    return SourceHere(reader.name, reader.reads, reason, gpu=True)
