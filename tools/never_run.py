"""Write docs/never-run.md from marks in the code: `hatch run docs:update`, or `hatch run docs:check`.

A mark is a line `Never run: WHERE; HOW FAR.` in the docstring of the file, or of the part of it, that no such machine
has run. WHERE is one of `WHERES`, so that a row is closed by removing its marks. Sources are read, never imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.written_page import ROOT, write_or_check

PAGE = ROOT / "docs" / "never-run.md"
# Where, and what somebody who has one can do.
WHERES = {
    "NVIDIA GPUs": "a reading beside a busy program, once with accounting mode and once without",
    "AMD, Intel and Arm GPUs": "a reading beside a busy program; the driver's name decides what it tells",
    "AMD GPUs with ROCm": "a reading beside a program that uses ROCm",
    "macOS": "a reading beside a busy program; then `hatch run conform`",
    "Windows": "a reading beside a busy program; runners can't be started there yet",
    "Metal": "`hatch run llm:conform`, with mlx-lm for Metal",
    "GPU builds of llama.cpp": "`hatch run llm:conform`, with a build for your GPU",
}
_MARK = re.compile(r"^ *Never run: (?P<where>[^;]+); (?P<instead>.+)\.$", re.MULTILINE)
_HEAD = """# What was never run

Written by `hatch run docs:update` from the marks `Never run:` in the code; do not edit.

Everything here was made and run on Linux without a GPU. What follows is written for other machines, and no such
machine has run it. Where something can't be told there, the tools say `unknown`, and that is not green.

"""
_TAIL = """
## Close a row

With such a machine, in ten minutes:

1. `oarbank-agent-check sources` says what can be read on it.
2. `oarbank-agent-check record --pid PID --out DIR`, PID being a program that keeps the GPU busy. The recording holds
   raw readings, without command lines and user names; look at it before you send it.
3. Open an issue with the form "A reading from a real GPU" and attach DIR.

The recording becomes a test, and the marks go when the readings were judged right.
"""


def marks(source: str) -> Iterator[tuple[str, str]]:
    """Yield the marks of a file's docstrings: where it was never run, and how far it was tested."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            for found in _MARK.finditer(ast.get_docstring(node) or ""):
                yield found["where"], found["instead"]


def page(root: Path = ROOT) -> str:
    """Return the page for a checkout. Raises ValueError for a mark whose WHERE is not known."""
    rows: dict[str, list[str]] = {where: [] for where in WHERES}
    for path in sorted(root.glob("packages/*/src/**/*.py")):
        name = "/".join(path.relative_to(root / "packages").parts[2:])
        for where, instead in marks(path.read_text("utf-8")):
            if where not in rows:
                raise ValueError(f"{name}: Never run: must name one of {', '.join(WHERES)}; found {where!r}")
            link = f"[{name}](../{path.relative_to(root).as_posix()})"
            rows[where].append(f"| {where} | {link} | {instead} |")
    table = ["| Where | What | How far it was tested |", "| --- | --- | --- |"]
    table += [row for group in rows.values() for row in group]
    asked = ["", "| Where | What would close it |", "| --- | --- |"]
    asked += [f"| {where} | {what} |" for where, what in WHERES.items() if rows[where]]
    return _HEAD + "\n".join([*table, *asked]) + "\n" + _TAIL


def main() -> int:
    """Write the page, or with --check say whether it is what the marks say; exit code 1 when it is not."""
    return write_or_check(PAGE, page(), "be what the marks say")


if __name__ == "__main__":
    raise SystemExit(main())
