"""What may be typed behind `oarbank-llmserve`: names, ranges and the help.

Wrong use is one line on stderr and exit status 2, here and in the runner. Nothing is opened or looked at here.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from importlib import metadata
from typing import Any

from oarbank_llmserve.job import BACKENDS, DEFAULT_TOKENS, MAX_TOKENS
from oarbank_sdk.oneline import OneLineParser

ABOUT = "Complete each line of a file with a local language model, in the share of the GPU's time that you give it."
STATUSES = (
    "Exit status: 0 all prompts were completed, 1 some were not, 2 wrong use, 3 the backend does not load here or "
    "the output cannot be written, 130 ended by Ctrl-C. Whatever was completed before is printed whole."
)


def parser() -> OneLineParser:
    """The whole command line."""
    whole = OneLineParser(prog="oarbank-llmserve", description=ABOUT, epilog=STATUSES)
    whole.add_argument("--version", action="version", version=f"oarbank-llmserve {_version()}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _batch(commands.add_parser("batch", help="complete each line of a file", description=ABOUT, epilog=STATUSES))
    _models(commands)
    _module(commands)
    about = "Say which backends load here; exit status 0, also where one does not."
    doctor = commands.add_parser("doctor", help="which backends load here", description=about)
    doctor.add_argument("--json", action="store_true", help="one line of JSON, as agents read it")
    return whole


def _batch(batch: argparse.ArgumentParser) -> None:
    batch.add_argument(
        "prompts", metavar="FILE",
        help="UTF-8, a prompt a line (empty lines are left out), or JSON Lines of text, messages, or objects with "
        "prompt or messages and settings of their own; - for stdin",
    )  # fmt: skip
    batch.add_argument("--model", metavar="M", help="a .gguf file or an MLX model's folder; --backend stub takes none")
    batch.add_argument("--duty", type=_duty, metavar="D", help="share of the time the device is kept busy, up to 1")
    batch.add_argument(
        "--longest-ms", type=_number(1, 60_000), metavar="L", help="no unit of device work longer than this"
    )
    batch.add_argument("--backend", choices=BACKENDS, default="auto", help="default: by what the model is")
    batch.add_argument("--chat", action="store_true", help="each plain prompt is a user's message to a chat model")
    batch.add_argument(
        "--max-tokens", type=_whole(MAX_TOKENS), default=DEFAULT_TOKENS, metavar="N",
        help=f"new tokens for each prompt at most (default: {DEFAULT_TOKENS})",
    )  # fmt: skip
    batch.add_argument(
        "--stop", action="append", type=_stop, default=None, metavar="TEXT", help="end a completion here; may repeat"
    )
    batch.add_argument(
        "--temperature", type=_number(0, 10), metavar="T", help="0, the default: always the likeliest token"
    )
    batch.add_argument("--top-p", type=_number(0.000_001, 1), metavar="P", help="the likeliest tokens of this share")
    batch.add_argument("--top-k", type=_whole(1_000_000, 0), metavar="K", help="the K likeliest tokens; 0: all")
    batch.add_argument(
        "--min-p", type=_number(0, 1), metavar="P", help="tokens of this share of the likeliest's chance"
    )
    batch.add_argument(
        "--seed", type=_whole(999_999_999, 0), metavar="N", help="of the first prompt; each has the next"
    )
    batch.add_argument("--memory-gb", type=_number(0.01, 1024), metavar="G", help="what the backend may allocate")
    batch.add_argument("--threads", type=_whole(1024), metavar="N", help="CPU threads (default: half of the CPUs)")
    batch.add_argument("--events", metavar="FILE", help="append the duty's reports to this file")
    batch.add_argument(
        "--out", metavar="FILE",
        help="completions as JSON Lines instead of on stdout; ended half-way, the same command goes on",
    )  # fmt: skip


def _models(commands: Any) -> None:
    about = "List what lies in a models folder, and what each model needs in memory, without loading any."
    models = commands.add_parser("models", help="models, and what they need in memory", description=about)
    models.add_argument("folder", nargs="?", metavar="FOLDER",
                        help="default: models in $OARBANK_MODULE_DATA, else models here")  # fmt: skip
    models.add_argument("--sequences", type=_whole(1024), default=8, metavar="N", help="at once (default: 8)")
    models.add_argument("--tokens", type=_whole(10_000_000), default=1024, metavar="N",
                        help="of each, prompt and completion (default: 1024)")  # fmt: skip


def _module(commands: Any) -> None:
    about = "Write the module as a folder that needs nothing beside it, for an agent's bundle or the conformance kit."
    module = commands.add_parser("module", help="write the module's folder", description=about)
    module.add_argument("folder", metavar="DIR", help="a new or an empty folder")
    module.add_argument(
        "--uv", metavar="FOLDER", help="run in the locked environment of its pyproject.toml and uv.lock"
    )
    module.add_argument("--python", type=_python, default="3.12.x", metavar="V", help="of --uv (default: 3.12.x)")


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


def _whole(most: int, least: int = 1) -> Callable[[str], int]:
    def whole(text: str) -> int:
        # A long row of digits is no number to Python.
        if not text.isascii() or not text.isdigit() or len(text) > 9 or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}; found {text[:80]}")
        return int(text)

    return whole


def _number(least: float, most: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be a number from {least:g} to {most:g}; found {text[:80]}")
        return value

    return number


def _python(text: str) -> str:
    if not re.fullmatch(r"3\.[0-9]{1,2}(\.([0-9]{1,3}|x))?", text):
        raise argparse.ArgumentTypeError(f"must be a version of Python such as 3.12.x; found {text[:80]}")
    return text
