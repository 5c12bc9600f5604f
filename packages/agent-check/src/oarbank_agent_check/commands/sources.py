"""`sources`: every source of busy time, whether it can read here and, if not, why and what to do."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from oarbank_agent_check.commands.words import TOLD, Commands, WrongUse, write_lines
from oarbank_agent_check.source_list import SourceHere, all_readers, sources_here
from oarbank_agent_check.sources.gpu import UnknownReader

EXIT_CODES = "Exit codes: 0 told, also where nothing can read, 2 wrong use."


def add(commands: Commands) -> None:
    """Add the command's words."""
    parser = commands.add_parser(
        "sources",
        help="say what can be read on this machine, and why the rest can't",
        description="Ask every source of every system and vendor whether it can read here. No process is read.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--json", action="store_true", help="one object: sources, each with source, can_read, why_not")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask and tell."""
    try:
        found = sources_here(all_readers())
    except UnknownReader as fault:
        raise WrongUse(str(fault)) from None
    write_lines([document(found)] if arguments.json else lines(found))
    return TOLD


def document(found: Sequence[SourceHere]) -> str:
    """Give the JSON object on one line."""
    rows = [
        {
            "source": one.name,
            "can_read": one.why_not is None,
            "gpu": one.gpu,
            "reads": one.reads,
            "why_not": one.why_not,
        }
        for one in found
    ]
    return json.dumps({"gpu": any(row["gpu"] and row["can_read"] for row in rows), "sources": rows})


def lines(found: Sequence[SourceHere]) -> list[str]:
    """Give a table: name, yes or no, and what it reads or why it can't; then what follows from it."""
    width = max(len(one.name) for one in found)
    table = [f"{'source':<{width}}  here  reads, or why it can't"]
    for one in found:
        word, text = ("yes", one.reads) if one.why_not is None else ("no", one.why_not)
        table.append(f"{one.name:<{width}}  {word:<4}  {text}")
    able = [one.name for one in found if one.gpu and one.why_not is None]
    verdict = f"GPU time can be read here: {', '.join(able)}." if able else "No GPU time can be read here."
    return [*table, "", verdict]
