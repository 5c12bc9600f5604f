"""``oarbank-sdk new runner DIR``: write a small runner that holds a duty, with its manifest, fixtures and test.

It passes `oarbank-sdk conform DIR` as written. Control and Duty are copied beside it, so it runs on a machine that has
Python and nothing of ours. Never writes over anything: DIR must be new or empty.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from importlib.resources import files
from pathlib import Path

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")  # short enough for every contract it goes into
_VENDORED = ("control.py", "duty.py")
_TEMPLATE = (
    "README.md",
    "conformance.json",
    "goldens/selftest.json",
    "oarbank-module.toml",
    "runner.py",
    "schemas/result.schema.json",
    "test_runner.py",
)


class New:
    """The command's arguments and what it prints."""

    help = "write a new runner that already holds a duty"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("what", choices=["runner"], metavar="runner", help="what to write; there is only this")
        parser.add_argument("dir", metavar="DIR", help="where to write it: a folder that is new or empty")
        parser.add_argument("--name", help="its short name, such as upscale (the folder's name)")

    def run(self, ns: argparse.Namespace) -> int:
        """Write the files; 2 when DIR or the name cannot be used."""
        folder = Path(ns.dir)
        name = ns.name or re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-")
        if not _NAME.fullmatch(name):
            told = "--name:" if ns.name else f"{ns.dir}: the folder's name, taken as the short name,"
            must = "must be lower-case letters, digits and dashes, a letter first, 40 at most"
            print(f"{told} {must}; found {name[:80]!r}. Give another with --name.", file=sys.stderr)
            return 2
        try:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                line = "must be new or an empty folder; found something there already. Give another."
                print(f"{ns.dir}: {line}", file=sys.stderr)
                return 2
            write_runner(folder, name)
        except OSError as fault:
            print(f"{ns.dir}: must be a folder that can be written; found: {fault.strerror}", file=sys.stderr)
            return 2
        # Inside a Hatch environment the command is reached through Hatch, from the checkout.
        command = "hatch run conform" if "HATCH_ENV_ACTIVE" in os.environ else "oarbank-sdk conform"
        print(
            f"{ns.dir}: {name}, a runner that holds a duty. Prove it:\n\n"
            f"    {command} {shlex.quote(os.path.abspath(ns.dir))}\n\n"
            "Then put your own work into `work()` in runner.py, and read README.md there."
        )
        return 0


def write_runner(folder: Path, name: str) -> None:
    """Write the template into `folder` under the short name `name`. Raises OSError."""
    package = files("oarbank_sdk")
    for path in _TEMPLATE:
        text = (package / "templates" / "runner" / path).read_text("utf-8")
        _write(folder / path, text.replace("{{name}}", name))
    for path in _VENDORED:
        _write(folder / "vendor" / "oarbank_sdk" / path, (package / path).read_text("utf-8"))
    _write(folder / "vendor" / "oarbank_sdk" / "__init__.py", '"""Copied from oarbank-sdk; Apache-2.0."""\n')


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


COMMAND = New()
