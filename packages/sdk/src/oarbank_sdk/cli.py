"""``oarbank-sdk COMMAND``: commands come from installed packages, through entry points.

A distribution adds one by declaring, in the group ``oarbank_sdk.commands``, an object with ``help`` (one line),
``configure(parser)`` and ``run(namespace) -> exit code``. Only the command asked for is imported, so a broken
package cannot take the others down. Exit codes: 0 yes, 1 no, 2 wrong use, 3 could not tell.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib.metadata import EntryPoint, entry_points, version

GROUP = "oarbank_sdk.commands"
# Commands that live in another distribution, so that a missing one can be explained.
KNOWN = {"conform": ("oarbank-conformkit", "prove that a runner holds its duty")}


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    wanted = next((word for word in argv if not word.startswith("-")), None)
    if wanted in KNOWN and wanted not in found:
        package = KNOWN[wanted][0]
        print(
            f"oarbank-sdk {wanted}: must come from {package}; found no such package here. pip install {package}",
            file=sys.stderr,
        )
        return 2
    return _run(_parser(found, wanted).parse_args(argv))


def _parser(found: dict[str, EntryPoint], wanted: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oarbank-sdk",
        description="Hold a GPU duty, and prove that you do.",
        epilog="Exit codes: 0 yes, 1 no, 2 wrong use, 3 could not tell.",
    )
    parser.add_argument("--version", action="version", version=f"oarbank-sdk {version('oarbank-sdk')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in sorted(found.keys() | KNOWN.keys()):
        if name == wanted:
            command = found[name].load()
            child = commands.add_parser(name, help=command.help, description=command.help)
            command.configure(child)
            child.set_defaults(_run=command.run)
        elif name in KNOWN:
            commands.add_parser(name, help=KNOWN[name][1], add_help=False)
        else:
            commands.add_parser(name, help=f"from {_distribution(found[name])}", add_help=False)
    return parser


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an installed package"


def _run(namespace: argparse.Namespace) -> int:
    try:
        return int(namespace._run(namespace))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has left, as `head` does: nothing more to say to it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
