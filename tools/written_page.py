"""A page that a program writes: put it in its place, or with --check say whether it is there already."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_or_check(page: Path, fresh: str, must: str) -> int:
    """Write `fresh` to `page`; with --check on the command line compare them instead. Returns the exit code.

    `must` says what the page must be, for the one line that is printed when it is something else.
    """
    if "--check" not in sys.argv[1:]:
        page.write_text(fresh, encoding="utf-8", newline="\n")
        return 0
    if page.exists() and page.read_text("utf-8") == fresh:
        return 0
    shown = page.relative_to(ROOT).as_posix()
    print(f"{shown}: must {must}; found something else. Run `hatch run docs:update`.")
    return 1
