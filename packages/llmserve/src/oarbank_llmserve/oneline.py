"""Wrong use of a command line is one line on stderr and exit status 2, for people's commands and the runner's alike."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line; argparse puts the whole usage before it."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2."""
        line = " ".join(message.split())
        where = line.removeprefix("argument ") if line.startswith("argument -") else f"{self.prog}: {line}"
        print(f"{where}. See {self.prog} --help", file=sys.stderr)
        sys.exit(2)
