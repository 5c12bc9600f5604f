"""``oarbank-sdk COMMAND``: commands come from installed packages, through entry points.

A distribution adds one by declaring, in the group ``oarbank_sdk.commands``, an object with ``help`` (one line),
``configure(parser)`` and ``run(namespace) -> exit code``. Only the command asked for is imported, so a broken
package cannot take the others down. Exit codes: 0 yes, 1 no, 2 wrong use, 3 could not tell.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from importlib.metadata import EntryPoint, entry_points, version

from oarbank_sdk.oneline import OneLineParser
from oarbank_sdk.outputs import prepare_outputs

GROUP = "oarbank_sdk.commands"
# Commands that we know of, with the distribution they come in: what --help says without importing them, and what a
# missing one is told.
KNOWN = {
    "conform": ("oarbank-conformkit", "prove that a runner holds its duty"),
    "new": ("oarbank-sdk", "write a new runner that already holds a duty"),
    "schema": ("oarbank-sdk", "print the JSON Schema of a contract"),
    "validate": ("oarbank-sdk", "judge documents against a contract"),
}


def main(argv: list[str] | None = None) -> int:
    """Run one command; its exit code, 130 after Ctrl-C."""
    prepare_outputs()
    return _run(sys.argv[1:] if argv is None else argv)


def _command(argv: list[str]) -> int:
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    wanted = argv[0] if argv else None
    if wanted in KNOWN and wanted not in found:
        package = KNOWN[wanted][0]
        print(
            f"oarbank-sdk {wanted}: must come from {package}; found no such package here. pip install {package}",
            file=sys.stderr,
        )
        return 2
    namespace = _parser(found, wanted).parse_args(argv)
    return int(namespace._run(namespace))


def _parser(found: dict[str, EntryPoint], wanted: str | None) -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="oarbank-sdk",
        description="Hold a GPU duty, and prove that you do.",
        epilog="Exit codes: 0 yes, 1 no, 2 wrong use, 3 could not tell.",
    )
    parser.add_argument("--version", action="version", version=f"oarbank-sdk {version('oarbank-sdk')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in sorted(found.keys() | KNOWN.keys()):
        if name == wanted:
            command = found[name].load()
            epilog = "Exit codes: 0 yes, 1 no, 2 wrong use, 3 could not tell."
            child = commands.add_parser(name, help=command.help, description=command.help, epilog=epilog)
            command.configure(child)
            child.set_defaults(_run=command.run)
        elif name in KNOWN:
            commands.add_parser(name, help=KNOWN[name][1], add_help=False)
        else:
            commands.add_parser(name, help=f"from {_distribution(found[name])}", add_help=False)
    return parser


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an installed package"


def _run(argv: list[str]) -> int:
    try:
        code = _command(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has left, as `head` does: nothing more to say to it
        _mute()
        return 3
    except OSError as fault:
        if fault.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        _mute()
        print(f"oarbank-sdk: standard output: must take what is printed; found: {fault.strerror}", file=sys.stderr)
        return 3
    return code


def _mute() -> None:
    """Standard output is of no use any more; the interpreter flushes it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
