"""`run`: one job of a module under a duty, measured and judged as an agent does it, with no fleet."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from oarbank_agent_check.commands.owned import run_owned
from oarbank_agent_check.commands.words import Commands

FASTEST = 1000.0
EXIT_CODES = (
    "Exit codes: 0 there is a result, 1 the job failed, was stopped or may not run, 2 wrong use, 3 could not tell:"
    " nothing could be measured, or this machine failed at its own part."
)


def add(commands: Commands) -> None:
    """Add the command's words."""
    run = commands.add_parser(
        "run",
        help="run one job of a module under a duty and hold it to it",
        description="Run one job of a module under a duty. Every 2 s its processes are measured: three samples in a row"
        " above the duty and 0.1 pause it for a minute, the third time within an hour stops it and bans its module for"
        " an hour.",
        epilog=EXIT_CODES,
    )
    run.add_argument("dir", metavar="DIR", help="the module's directory, the one that holds oarbank-module.toml")
    run.add_argument("--stage", metavar="S", help="which stage (default: the module's default stage)")
    run.add_argument("--payload", required=True, metavar="JSON|@FILE", help="the job's payload, one JSON object")
    asked = run.add_mutually_exclusive_group(required=True)
    asked.add_argument("--duty", type=part, metavar="D", help="the share of the GPU's time it may take, above 0 to 1")
    asked.add_argument(
        "--level",
        type=level,
        metavar="L|@FILE",
        help="the share to begin with, or the certificate that grants one; --pressure then moves it",
    )
    run.add_argument("--pressure", metavar="CMD", help="prints how much the protected program slowed, over its target")
    run.add_argument("--measure", choices=("gpu", "cpu"), default="gpu", help="what is measured (default gpu)")
    run.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True, help="judge what is measured (default)"
    )
    run.add_argument("--out", metavar="DIR", help="where the result is kept (default ./MODULE-STAGE-result)")
    run.add_argument("--journal", metavar="FILE", help="where it is written what was heard and ordered; -: stdout")
    run.add_argument("--state", metavar="DIR", help="what is remembered between runs, bans above all")
    run.add_argument("--data", metavar="DIR", help="the module's own folder, with its models (default in the state)")
    run.add_argument("--time-factor", type=factor, default=1.0, metavar="F", help=argparse.SUPPRESS)
    run.set_defaults(run=run_job)


def run_job(arguments: argparse.Namespace) -> int:
    """Run the job, and give the exit code."""
    return run_owned(arguments, "run_request", "run_job")


def part(text: str) -> float:
    """Read a share of time, above 0 and at most 1."""
    number = _float(text)
    if not 0 < number <= 1:  # false for NaN too
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1; found {text[:80]!r}")
    return number


def level(text: str) -> float | Path:
    """Read a share of time, or the certificate that grants one."""
    return Path(text[1:]) if text.startswith("@") else part(text)


def factor(text: str) -> float:
    """Read how many times faster the agent's clock runs."""
    number = _float(text)
    if not 1 <= number <= FASTEST:
        raise argparse.ArgumentTypeError(f"must be 1 to {FASTEST:.0f}; found {text[:80]!r}")
    return number


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
