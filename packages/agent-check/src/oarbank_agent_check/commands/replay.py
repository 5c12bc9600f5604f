"""`replay`: feed a journal's inputs to the law again and print the orders, one JSON object a line."""

from __future__ import annotations

import argparse
import sys

from oarbank_agent_check import core, journal
from oarbank_agent_check.commands.words import COULD_NOT_TELL, TOLD, Commands, WrongUse, write_lines
from oarbank_agent_check.inputs import Input
from oarbank_sdk.whole_file import read_standard_input, read_whole

EXIT_CODES = "Exit codes: 0 replayed, 2 not a journal, or a file that can't be read (nothing is printed then)."


def add(commands: Commands) -> None:
    """Add the command's words."""
    replay = commands.add_parser(
        "replay",
        help="let the law judge a recorded journal again",
        description="Feed the inputs of an agent-journal-1 to the law, on the journal's own time, and print what it"
        " orders. The same journal always gives the same lines. Orders that the journal holds are passed over.",
        epilog=EXIT_CODES,
    )
    replay.add_argument("journal", metavar="JOURNAL", help="a file of one JSON object a line; - for stdin")
    replay.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge the whole file first, then print the orders."""
    try:
        inputs = _inputs(arguments.journal)
        state = core.State()
        for told in inputs:
            state, orders = core.step(state, (told,), told.t)
            if orders:
                write_lines(journal.line_of(order) for order in orders)
    except KeyboardInterrupt:
        return COULD_NOT_TELL
    return TOLD


def _inputs(name: str) -> list[Input]:
    if name == "-" and sys.stdin is None:
        raise WrongUse("-: must be an open standard input; found it closed. Name a file.")
    try:
        data = read_standard_input() if name == "-" else read_whole(name)
    except (OSError, ValueError) as fault:  # ValueError: a NUL in the name
        reason = getattr(fault, "strerror", None) or str(fault)
        raise WrongUse(f"{name[:200]!r}: must be a file that can be read; found: {reason}") from None
    try:
        return list(journal.read(data.split(b"\n")))
    except journal.WrongLine as fault:
        raise WrongUse(f"{name[:200]}: {fault}") from None
