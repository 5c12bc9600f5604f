"""The program `oarbank-agent-check`: words into calls, answers into lines and an exit code. It holds no rule.

Exit codes: 0 told, 2 wrong use, 3 could not tell. It answers no yes-or-no question, so 1 is never given. One line on
stderr says what was wrong and what to do.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from oarbank_agent_check import render
from oarbank_agent_check.process_table import NoProcesses
from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sampling import Ending, take_samples
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess

TOLD, WRONG_USE, COULD_NOT_TELL = 0, 2, 3
MOST_PID = (1 << 31) - 1
EXIT_CODES = (
    "Exit codes: 0 every sample that was asked for could be read, 2 wrong use, 3 something could not be read, or the"
    " process ended before all samples were taken."
)
SHORTEST_S, LONGEST_S = 0.05, 3600.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return _sample(arguments)
    except NoSuchProcess as fault:
        return _say(str(fault), WRONG_USE)
    except (UnreadableProcess, NoProcesses) as fault:
        return _say(str(fault), COULD_NOT_TELL)
    except BrokenPipeError:
        # The reader has left, as `head` does. Python would complain once more when it flushes at the very end.
        _drop_output()
        return COULD_NOT_TELL
    except _Unwritable as fault:
        _drop_output()
        return _say(f"the samples must be written; {fault}. Send the output elsewhere.", COULD_NOT_TELL)


class _Unwritable(Exception):
    """A sample could not be written; the text is the system's reason."""


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. `{self.prog} --help` shows what there is.", file=sys.stderr)
        raise SystemExit(WRONG_USE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oarbank-agent-check",
        description="Read how busy a job's processes keep a device: a number, a known zero, or unknown with a reason.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"oarbank-agent-check {version('oarbank-agent-check')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    sample = commands.add_parser(
        "sample",
        help="measure a process, and with --children all of its descendants",
        description="Measure a process. The one source there is stands in for the GPU: the CPU time of the busiest"
        " thread in each tick of at most 5 ms.",
        epilog=EXIT_CODES,
    )
    sample.add_argument("--pid", type=_pid, required=True, metavar="N", help="the process")
    sample.add_argument("--children", action="store_true", help="its descendants belong to it too")
    sample.add_argument("--count", type=_count, default=1, metavar="K", help="samples; 0: until it ends (default 1)")
    sample.add_argument("--interval", type=_interval, default=2.0, metavar="S", help="seconds a sample (default 2.0)")
    sample.add_argument("--json", action="store_true", help="one gpu-sample-1 document a line")
    return parser


def _sample(arguments: argparse.Namespace) -> int:
    tree = ProcessTree(arguments.pid, children=arguments.children)
    unread = 0

    def hand_over(sample: Sample) -> None:
        nonlocal unread
        unread += sample.share is None
        lines = [render.json_line(sample)] if arguments.json else render.readable_lines(sample)
        try:
            print("\n".join(lines), flush=True)
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise _Unwritable(exc.strerror or str(exc)) from None

    try:
        ending, taken = take_samples(
            CpuThreads(tree, keep_s=1.0),
            lambda: bool(tree.pids()),
            interval_s=arguments.interval,
            count=arguments.count,
            hand_over=hand_over,
        )
    except KeyboardInterrupt:
        return COULD_NOT_TELL if arguments.count else TOLD
    if ending is Ending.ENDED:
        asked = f" of {arguments.count}" if arguments.count else ""
        noun = "sample" if (arguments.count or taken) == 1 else "samples"
        print(f"oarbank-agent-check: pid {arguments.pid}: ended after {taken}{asked} {noun}", file=sys.stderr)
    return exit_code(ending, asked=arguments.count, unread=unread)


def exit_code(ending: Ending, *, asked: int, unread: int) -> int:
    """Say whether all that was asked for could be told: `asked` 0 asks until the end, `unread` samples were unknown."""
    short = ending is Ending.ENDED and asked > 0
    return COULD_NOT_TELL if unread or short else TOLD


def _say(line: str, code: int) -> int:
    print(f"oarbank-agent-check: {line}", file=sys.stderr)
    return code


def _pid(text: str) -> int:
    number = int(text[:4000]) if text.isascii() and text.isdigit() else 0  # Python refuses to read far longer ones
    if not number:
        raise argparse.ArgumentTypeError(f"must be a process id, 1 or more; found {text[:80]!r}")
    if number > MOST_PID:
        raise argparse.ArgumentTypeError(f"must be a process that runs on this machine; no such process: {text[:80]}")
    return number


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, 0 or more; found {text[:80]!r}")
    return int(text)


def _interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not SHORTEST_S <= seconds <= LONGEST_S:  # false for NaN too
        limits = f"{SHORTEST_S} to {LONGEST_S:.0f} seconds"
        raise argparse.ArgumentTypeError(f"must be {limits}; found {text[:80]!r}")
    return seconds
