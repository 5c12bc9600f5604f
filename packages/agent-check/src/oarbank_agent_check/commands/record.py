"""`record`: take a recording of the machine's own readings, as `recording` reads them and a bug report wants them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from oarbank_agent_check.commands.words import (
    COULD_NOT_TELL,
    TOLD,
    Commands,
    CouldNotTell,
    WrongUse,
    count,
    interval,
    pid,
    write_lines,
)
from oarbank_agent_check.gpu_readings import GpuReader, GpuReading, Recorder
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.cpu_recording import CpuRecorder
from oarbank_agent_check.sources.gpu import UnknownReader, readers
from oarbank_agent_check.sources.plain_recording_parse import written
from oarbank_agent_check.tree import ProcessTree

EXIT_CODES = (
    "Exit codes: 0 a GPU was recorded, 2 wrong use, 3 no GPU could be read here (the CPU is recorded still), or the"
    " process ended, or Ctrl-C came, before all readings were taken."
)


def add(commands: Commands) -> None:
    """Add the command's words."""
    parser = commands.add_parser(
        "record",
        help="record this machine's raw readings of a process, for a bug report",
        description="Read a process several times and keep the readings as they are, in files that `recording` reads."
        " Command lines, user names and processes that are not asked for are left out.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--pid", type=pid, required=True, metavar="P", help="the process")
    parser.add_argument("--children", action="store_true", help="its descendants belong to it too")
    parser.add_argument("--out", required=True, metavar="DIR", help="where to write; made when it is not there")
    parser.add_argument("--readings", type=count, default=2, metavar="N", help="how many, 2 or more (default 2)")
    parser.add_argument("--seconds", type=interval, default=2.0, metavar="S", help="between two readings (default 2.0)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Record, and give the exit code."""
    if arguments.readings < 2:
        raise WrongUse(f"--readings: must be 2 or more, a baseline and what comes after; found {arguments.readings}")
    tree = ProcessTree(arguments.pid, children=arguments.children)
    folder = _folder(arguments.out)
    try:
        found = readers()
    except UnknownReader as fault:
        raise WrongUse(str(fault)) from None
    able, why = _able(found)
    recorders: list[Recorder] = [*able, CpuRecorder()]
    try:
        files, taken = _record(tree, recorders, arguments.readings, arguments.seconds)
    finally:
        for reader in found:
            reader.close()
    _write(folder, files)
    write_lines([*(str(folder / name) for name in files), "`oarbank-agent-check recording FILE --pid P` reads them."])
    for line in why:
        print(f"oarbank-agent-check: {line}", file=sys.stderr)
    if taken < arguments.readings:
        print(f"oarbank-agent-check: ended after {taken} of {arguments.readings} readings", file=sys.stderr)
    if not able:
        raise CouldNotTell("no GPU could be recorded here; the CPU clocks were, in their place.")
    return TOLD if taken == arguments.readings else COULD_NOT_TELL


class _Plain:
    """Records what a reader hands over, for one that keeps nothing rawer."""

    def __init__(self, reader: GpuReader) -> None:
        self._reader = reader

    def raw(self, members: Collection[ProcessKey]) -> GpuReading:
        try:
            return self._reader.read(members)
        except Exception as fault:  # readers may be other people's code
            why = Unknown(f"the reader broke ({type(fault).__name__}: {str(fault)[:80]}). Report it.")
            return GpuReading(time.monotonic(), unknown={key.pid: why for key in members})

    def recording(self, raws: Sequence[GpuReading]) -> Mapping[str, bytes]:
        return {f"{self._reader.name}.json": written(self._reader.name, raws)} if raws else {}


def _able(found: Sequence[GpuReader]) -> tuple[list[Recorder], list[str]]:
    """Give the readers that can record here, and why the others can't."""
    able: list[Recorder] = []
    lines: list[str] = []
    for reader in found:
        try:
            why = reader.hindrance()
        except Exception as fault:  # the same
            why = Unknown(f"the reader broke ({type(fault).__name__}: {str(fault)[:80]}). Report it.")
        if why is not None:
            lines.append(f"{reader.name}: {why.reason}")
        elif isinstance(reader, Recorder):
            able.append(reader)
        else:
            able.append(_Plain(reader))
    return able, lines


def _record(
    tree: ProcessTree, recorders: Sequence[Recorder], number: int, pause_s: float
) -> tuple[dict[str, bytes], int]:
    """Read `number` times, fewer when the processes end or Ctrl-C comes; give the files and how often it was."""
    raws: list[list[Any]] = []
    with suppress(KeyboardInterrupt):
        while len(raws) < number and (members := tree.refresh()):
            raws.append([recorder.raw(members) for recorder in recorders])
            if len(raws) < number:
                time.sleep(pause_s)
    files: dict[str, bytes] = {}
    for index, recorder in enumerate(recorders):
        files |= recorder.recording([raw[index] for raw in raws])
    return files, len(raws)


def _folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or str(fault)
        raise WrongUse(f"--out: must be a folder that can be written; {name[:200]}: {reason}.") from None
    return folder


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        try:
            (folder / name).write_bytes(content)
        except OSError as fault:
            raise CouldNotTell(f"{folder / name}: must be written; {fault.strerror}. Choose another --out.") from None
