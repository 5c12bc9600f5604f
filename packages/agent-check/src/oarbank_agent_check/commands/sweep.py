"""`sweep`: certify how much of the GPU a module may take beside a protected program."""

from __future__ import annotations

import argparse
import math
from itertools import pairwise

from oarbank_agent_check.certify import LEAST_LEVEL, LEAST_PAIRS, LEVELS
from oarbank_agent_check.commands.owned import run_owned
from oarbank_agent_check.commands.words import Commands

EXIT_CODES = (
    "Exit codes: 0 a level is certified, 1 every level harms more than the target, 2 wrong use, 3 could not tell: too"
    " noisy, out of time, nothing could be measured, or stopped."
)
MOST_LEVELS = 40
LONGEST_WINDOW_S = 300.0  # a pause may last 600 s
LONGEST_S = 7 * 86400.0
MOST_SEED = 1 << 53


def add(commands: Commands) -> None:
    """Add the command's words."""
    sweep = commands.add_parser(
        "sweep",
        help="certify how much of the GPU a module may take beside a protected program",
        description="Run a module's job beside a protected program, in windows with the work paused and running whose"
        " order a coin chooses, and find the highest level of the GPU's time that surely costs the program no more of"
        " its progress than the target. The program must be at its usual work all the while, and the job must last.",
        epilog=EXIT_CODES,
    )
    sweep.add_argument("dir", metavar="DIR", help="the module's directory, the one that holds oarbank-module.toml")
    sweep.add_argument("--stage", metavar="S", help="which stage (default: the module's default stage)")
    sweep.add_argument("--payload", required=True, metavar="JSON|@FILE", help="the job's payload; it must last long")
    sweep.add_argument(
        "--progress", required=True, metavar="CMD|@FILE",
        help="the program's progress: a command that prints a number that only grows, or a file that holds it",
    )  # fmt: skip
    sweep.add_argument(
        "--target", type=harm, default=0.05, metavar="H", help="the part of its progress it may lose (default 0.05)"
    )
    shown = ",".join(f"{level:g}" for level in LEVELS)
    sweep.add_argument(
        "--levels", type=levels, default=LEVELS, metavar="L,L,...", help=f"what is tried, rising (default {shown})"
    )
    sweep.add_argument("--window", type=window, default=10.0, metavar="S", help="seconds of a window (default 10)")
    sweep.add_argument(
        "--settle", type=settle, default=2.0, metavar="S", help="seconds left out after each change (default 2)"
    )
    sweep.add_argument(
        "--time-limit", type=limit, default=7200.0, metavar="S", help="seconds for all of it (default 7200)"
    )
    sweep.add_argument(
        "--least-pairs", type=pairs, default=LEAST_PAIRS, metavar="N",
        help=f"pairs of windows that a pass takes at least (default {LEAST_PAIRS}); more see rarer harm",
    )  # fmt: skip
    sweep.add_argument("--measure", choices=("gpu", "cpu"), default="gpu", help="what is measured (default gpu)")
    sweep.add_argument("--out", metavar="FILE", help="where the certificate goes (default ./MODULE-STAGE-level.json)")
    sweep.add_argument("--program", type=name, metavar="NAME", help="which program, for people")
    sweep.add_argument("--seed", type=seed, metavar="N", help="of the coins (default: another one each time)")
    sweep.add_argument("--data", metavar="DIR", help="the module's own folder, with its models (default in the state)")
    sweep.add_argument("--json", action="store_true", help="a line for each pair of windows, and the certificate last")
    sweep.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Search, and give the exit code."""
    return run_owned(arguments, "sweep_request", "run_sweep")


def levels(text: str) -> tuple[float, ...]:
    """Read a list of levels."""
    found = tuple(_number(part) for part in text[:1000].split(","))
    rising = all(a < b for a, b in pairwise(found))
    if not (rising and found[0] >= LEAST_LEVEL and found[-1] <= 1 and len(found) <= MOST_LEVELS):  # so for NaN too
        must = f"must be at most {MOST_LEVELS} rising numbers from {LEAST_LEVEL} to 1"
        raise argparse.ArgumentTypeError(f"{must}; found {text[:80]!r}")
    return found


def harm(text: str) -> float:
    """Read a target."""
    return _within(text, "must be 0.001 to 0.9", 0.001, 0.9)


def window(text: str) -> float:
    """Read the seconds of a window."""
    return _within(text, f"must be 0.2 to {LONGEST_WINDOW_S:.0f} seconds", 0.2, LONGEST_WINDOW_S)


def settle(text: str) -> float:
    """Read the seconds that are left out."""
    return _within(text, "must be 0.1 to 60 seconds", 0.1, 60.0)


def limit(text: str) -> float:
    """Read the seconds of the whole search."""
    return _within(text, f"must be 1 to {LONGEST_S:.0f} seconds", 1.0, LONGEST_S)


def pairs(text: str) -> int:
    """Read a number of pairs."""
    return _whole(text, 5, 100_000)


def seed(text: str) -> int:
    """Read a seed."""
    return _whole(text, 0, MOST_SEED)


def name(text: str) -> str:
    """Read a program's name."""
    if not text.strip() or not text.isprintable() or len(text) > 80:
        raise argparse.ArgumentTypeError(f"must be 1 to 80 printable characters; found {text[:80]!r}")
    return text


def _whole(text: str, least: int, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else -1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"must be a whole number, {least} to {most}; found {text[:80]!r}")
    return number


def _within(text: str, must: str, least: float, most: float) -> float:
    number = _number(text)
    if not least <= number <= most:  # false for NaN too
        raise argparse.ArgumentTypeError(f"{must}; found {text[:80]!r}")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
