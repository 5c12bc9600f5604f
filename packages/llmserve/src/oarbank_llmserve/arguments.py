"""What may be typed behind `oarbank-llmserve`: names, ranges and the help.

Wrong use is one line on stderr and exit status 2, here and in the runner. Nothing is opened or looked at here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import metadata
from typing import NoReturn

from oarbank_llmserve.job import BACKENDS, DEFAULT_TOKENS, MAX_TOKENS

ABOUT = "Complete each line of a file with a local language model, in the share of the GPU's time that you give it."
STATUSES = (
    "Exit status: 0 all prompts were completed, 1 some were not, 2 wrong use, 3 the backend does not load here or "
    "the output cannot be written, 130 ended by Ctrl-C. Whatever was completed before is printed whole."
)


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse puts the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        line = " ".join(message.split())
        where = line.removeprefix("argument ") if line.startswith("argument -") else f"{self.prog}: {line}"
        print(f"{where}. See {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def parser() -> OneLineParser:
    """The whole command line."""
    whole = OneLineParser(prog="oarbank-llmserve", description=ABOUT, epilog=STATUSES)
    whole.add_argument("--version", action="version", version=f"oarbank-llmserve {_version()}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _batch(commands.add_parser("batch", help="complete each line of a file", description=ABOUT, epilog=STATUSES))
    about = "Say which backends load here; exit status 0, also where one does not."
    doctor = commands.add_parser("doctor", help="which backends load here", description=about)
    doctor.add_argument("--json", action="store_true", help="one line of JSON, as agents read it")
    return whole


def _batch(batch: argparse.ArgumentParser) -> None:
    batch.add_argument("prompts", help="a UTF-8 text file, one prompt a line (empty lines are left out); - for stdin")
    batch.add_argument("--model", metavar="FILE.gguf", help="the model; --backend stub takes none")
    batch.add_argument("--duty", type=_duty, metavar="D", help="share of the time the device is kept busy, up to 1")
    batch.add_argument("--backend", choices=BACKENDS, default="auto", help="default: by what the model is")
    batch.add_argument(
        "--max-tokens", type=_whole(MAX_TOKENS), default=DEFAULT_TOKENS, metavar="N",
        help=f"new tokens for each prompt at most (default: {DEFAULT_TOKENS})",
    )  # fmt: skip
    batch.add_argument(
        "--stop", action="append", type=_stop, default=[], metavar="TEXT", help="end a completion here; may repeat"
    )
    batch.add_argument("--threads", type=_whole(1024), metavar="N", help="CPU threads (default: half of the CPUs)")
    batch.add_argument("--events", metavar="FILE", help="append the duty's reports to this file")


def _version() -> str:
    try:
        return metadata.version("oarbank-llmserve")
    except metadata.PackageNotFoundError:  # its sources on the path, and nothing installed
        return "(not installed)"


def _duty(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be a number above 0 and up to 1; found {text[:80]}")
    return value


def _stop(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty. Name the text that ends a completion, or leave it out")
    return text


def _whole(most: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        # A long row of digits is no number to Python.
        if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from 1 to {most}; found {text[:80]}")
        return int(text)

    return whole
