"""``oarbank-sdk schema [KIND]``: print a contract's JSON Schema, or the names of all."""

from __future__ import annotations

import argparse
import sys

from oarbank_sdk.contracts import catalogue


class Schema:
    """The command's arguments and what it prints."""

    help = "print the JSON Schema of a contract"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("kind", metavar="KIND", nargs="?", help="a contract; without one, all names are listed")

    def run(self, ns: argparse.Namespace) -> int:
        """Print; 2 for a kind that does not exist."""
        if ns.kind is None:
            for kind in catalogue.kinds():
                print(f"{kind:24} {catalogue.schema(kind)['description']}")
            return 0
        try:
            print(catalogue.text(ns.kind), end="")
        except catalogue.UnknownKind as unknown:
            print(f"oarbank-sdk schema: {unknown}", file=sys.stderr)
            return 2
        return 0


COMMAND = Schema()
