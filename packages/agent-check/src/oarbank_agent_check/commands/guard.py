"""`guard`: one machine, whole: programs that own the GPU, and governed jobs and workloads beside them."""

from __future__ import annotations

import argparse

from oarbank_agent_check.commands.owned import run_owned
from oarbank_agent_check.commands.run import factor
from oarbank_agent_check.commands.words import Commands

EXIT_CODES = (
    "Exit codes: 0 every job has its result, 1 a job failed, was stopped or was not finished, 2 wrong use, 3 could not"
    " tell: nothing could be measured, or this machine failed at its own part."
)


def add(commands: Commands) -> None:
    """Add the command's words."""
    guard = commands.add_parser(
        "guard",
        help="protect programs that own the GPU, and run jobs beside them",
        description="Protect the programs that CONFIG.toml names, and run its jobs and workloads on what is left of the"
        " GPU: at a duty that shrinks when a program slows, measured every 2 s. It ends when all jobs are done. Started"
        " again it goes on: what has its result is not run again, and no ban is forgotten.",
        epilog=EXIT_CODES,
    )
    guard.add_argument("config", metavar="CONFIG.toml", help="what to protect and what to run (guard-config-1)")
    guard.add_argument("--html", metavar="FILE", help="a page that shows all of it over time, written every 3 s")
    guard.add_argument("--json", action="store_true", help="a JSON object a line on stdout, one every 2 s")
    guard.add_argument("--out", metavar="DIR", help="where results are kept (default ./CONFIG-results)")
    guard.add_argument("--measure", choices=("gpu", "cpu"), default="gpu", help="what is measured (default gpu)")
    guard.add_argument("--journal", metavar="FILE", help="where it is written what was heard and ordered")
    guard.add_argument("--state", metavar="DIR", help="what is remembered between runs, bans above all")
    guard.add_argument("--time-factor", type=factor, default=1.0, metavar="F", help=argparse.SUPPRESS)
    guard.set_defaults(run=run_guard)


def run_guard(arguments: argparse.Namespace) -> int:
    """Guard the machine, and give the exit code."""
    return run_owned(arguments, "guard_request", "run_guard")
