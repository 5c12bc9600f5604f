"""`recording`: what the processes of a recording gained between its first and its last reading."""

from __future__ import annotations

import argparse
import json

from oarbank_agent_check.commands.words import COULD_NOT_TELL, TOLD, Commands, WrongUse, pid, write_lines
from oarbank_agent_check.counters import Gain, add_gains
from oarbank_agent_check.gpu_readings import NotARecording
from oarbank_agent_check.readings import NS_PER_S, Unknown
from oarbank_agent_check.sources.recording_parse import gains_of, readings_of

MOST_BYTES = 256 << 20
"""Of one file: ioreg prints megabytes, and nothing here is as large as this."""

EXIT_CODES = (
    "Exit codes: 0 the gain of every process that was asked for could be told, 2 wrong use (a file that is no recording"
    " too), 3 something could not be told: null, with a reason."
)


def add(commands: Commands) -> None:
    """Add the command's words."""
    parser = commands.add_parser(
        "recording",
        help="what processes gained between the first and the last reading of a recording",
        description="Read a recording: Linux fdinfo files with '#@' lines, ioreg's text or plist (one file a reading),"
        " or JSON of KFD, NVML, PDH or CPU clocks. The kind is told by the content. The first reading is the baseline."
        " Processes that are not asked for are outside the job: a client that they hold too is not the job's.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("file", nargs="+", metavar="FILE", help="the recording, or its readings in order")
    parser.add_argument("--pid", type=pid, action="append", required=True, metavar="P", help="a process of the job")
    parser.add_argument("--json", action="store_true", help="one object: gain_ns by pid, job_ns, reasons by pid")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the gains and give the exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return COULD_NOT_TELL


def _run(arguments: argparse.Namespace) -> int:
    documents = [_content(path) for path in arguments.file]
    try:
        gains = gains_of(readings_of(documents, arguments.pid), arguments.pid)
    except NotARecording as fault:
        raise WrongUse(f"{' '.join(arguments.file)[:200]}: {fault}") from None
    except MemoryError:
        raise WrongUse(
            f"{' '.join(arguments.file)[:200]}: must fit into memory. Ask for a shorter recording."
        ) from None
    job = add_gains(gains.values())
    write_lines([_document(gains, job)] if arguments.json else _lines(gains, job))
    return COULD_NOT_TELL if isinstance(job.busy, Unknown) else TOLD


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as fault:  # ValueError: a path with a zero in it
        reason = getattr(fault, "strerror", None) or str(fault)
        raise WrongUse(f"{path[:200]}: must be a readable file; {reason}.") from None
    if len(content) > MOST_BYTES:
        raise WrongUse(f"{path[:200]}: must be at most {MOST_BYTES >> 20} MiB; found more. Is it a recording?")
    return content


def _document(gains: dict[int, Gain], job: Gain) -> str:
    document = {
        "gain_ns": {str(pid): _number(gain) for pid, gain in gains.items()},
        "job_ns": _number(job),
        "reasons": {str(pid): gain.busy.reason for pid, gain in gains.items() if isinstance(gain.busy, Unknown)},
    }
    return json.dumps(document, separators=(",", ":"))


def _lines(gains: dict[int, Gain], job: Gain) -> list[str]:
    return [*(f"pid {pid}: {_words(gain)}" for pid, gain in gains.items()), f"job: {_words(job)}"]


def _words(gain: Gain) -> str:
    if isinstance(gain.busy, Unknown):
        part = f" At least {_seconds(gain.known_ns)} could be read." if gain.known_ns else ""
        return f"unknown: {gain.busy.reason}{part}"
    if gain.low is None or gain.high is None:
        return _seconds(gain.busy)
    return f"{_seconds(gain.busy)}, between {_seconds(gain.low)} and {_seconds(gain.high)}"


def _seconds(ns: int) -> str:
    whole, rest = divmod(ns, NS_PER_S)  # exact, however large
    return f"{whole}.{rest:09d} s"


def _number(gain: Gain) -> int | None:
    return None if isinstance(gain.busy, Unknown) else gain.busy
