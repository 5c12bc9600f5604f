"""``oarbank-sdk validate KIND FILE...``: the whole chain judges a document: bytes, JSON, schema, the rules beside it.

Exit codes: 0 every file is valid, 1 one is not, 2 wrong use (no such kind, a file that cannot be read).
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oarbank_sdk.contracts import catalogue
from oarbank_sdk.whole_file import read_standard_input, read_whole

if TYPE_CHECKING:
    from oarbank_sdk.contracts.judge import Verdict


class Validate:
    """The command's arguments and what it prints."""

    help = "judge documents against a contract"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.epilog = "KIND is one of: " + ", ".join(catalogue.kinds())
        parser.add_argument("kind", metavar="KIND", help="a contract, such as runner-control-1")
        parser.add_argument("files", metavar="FILE", nargs="+", help="a document; *.ndjson: one a line; - for stdin")
        parser.add_argument("--json", action="store_true", help="one JSON object a file, and nothing else")

    def run(self, ns: argparse.Namespace) -> int:
        """Judge every file; the worst answer is the exit code."""
        try:
            catalogue.text(ns.kind)
        except catalogue.UnknownKind as unknown:
            print(f"oarbank-sdk validate: {unknown}", file=sys.stderr)
            return 2
        try:
            from oarbank_sdk.contracts.judge import judge
        except ModuleNotFoundError as missing:
            print(f"oarbank-sdk validate: {missing}", file=sys.stderr)
            return 2
        worst = 0
        for name in ns.files:
            try:
                data = _read(name)
            except (OSError, ValueError) as fault:  # ValueError: a NUL in the name
                why = getattr(fault, "strerror", None) or fault
                print(f"{name}: must be a file that can be read; found: {why}.", file=sys.stderr)
                worst = 2
                continue
            for place, document in _documents(ns.kind, name, data):
                verdict = judge(ns.kind, document)
                _print(place, verdict, as_json=ns.json)
                worst = max(worst, 0 if verdict.valid else 1)
        return worst


def _read(name: str) -> bytes:
    return read_standard_input() if name == "-" else read_whole(name)


def _documents(kind: str, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The documents of a file, each with its place: an events file or a sampler's output holds one a line."""
    if not name.endswith((".ndjson", ".jsonl")):
        yield name, _as_json(kind, name, data)
        return
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            yield f"{name}:{number}", line


def _as_json(kind: str, name: str, data: bytes) -> bytes:
    """A manifest is written as TOML and judged as the value that it holds; broken TOML is judged as it is."""
    if kind != "module-manifest-1" or not name.endswith(".toml"):
        return data
    try:
        return json.dumps(tomllib.loads(data.decode("utf-8"))).encode()
    except (ValueError, TypeError):  # no UTF-8, no TOML, a date
        return data


def _print(name: str, verdict: Verdict, *, as_json: bool) -> None:
    faults = [{"pointer": f.pointer, "keyword": f.keyword, "message": f.message} for f in verdict.faults]
    if as_json:
        row = {"file": name, "kind": verdict.kind, "valid": verdict.valid, "layer": verdict.layer, "faults": faults}
        print(json.dumps(row))
        return
    if verdict.valid:
        print(f"{name}: valid {verdict.kind}")
    for fault in verdict.faults:
        where = f"{name}: {fault.pointer}" if fault.pointer else name
        print(f"{where}: {fault.message} ({fault.keyword})")


COMMAND = Validate()
