"""The program `oarbank-agent-check`: it finds the command and turns what goes wrong into one line and an exit code.

Exit codes: 0 yes or told, 1 no, 2 wrong use, 3 could not tell. One line on stderr says what was wrong and what to do.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version

from oarbank_agent_check.commands import guard, record, recording, replay, run, sample, sources, sweep, watch
from oarbank_agent_check.commands.words import COULD_NOT_TELL, WRONG_USE, CouldNotTell, Unwritable, WrongUse
from oarbank_agent_check.process_table import NoProcesses
from oarbank_agent_check.tree import NoSuchProcess, UnreadableProcess
from oarbank_sdk.oneline import OneLineParser
from oarbank_sdk.outputs import prepare_outputs

COMMANDS = (sample, replay, run, guard, recording, record, sources, watch, sweep)
EXIT_CODES = "Exit codes: 0 yes or told, 1 no, 2 wrong use, 3 could not tell. `COMMAND --help` says them for each."


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    prepare_outputs()
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (NoSuchProcess, WrongUse) as fault:
        return _say(str(fault), WRONG_USE)
    except (UnreadableProcess, NoProcesses, CouldNotTell) as fault:
        return _say(str(fault), COULD_NOT_TELL)
    except BrokenPipeError:
        # The reader has left, as `head` does. Python would complain once more when it flushes at the very end.
        _drop_output()
        return COULD_NOT_TELL
    except Unwritable as fault:
        _drop_output()
        return _say(f"the output must be written; {fault}. Send it elsewhere.", COULD_NOT_TELL)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="oarbank-agent-check",
        description="Read how busy a job's processes keep a device: a number, a known zero, or unknown with a reason.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"oarbank-agent-check {version('oarbank-agent-check')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add(commands)
    return parser


def _say(line: str, code: int) -> int:
    print(f"oarbank-agent-check: {line}", file=sys.stderr)
    return code
