"""`hatch run SCRIPT ARGS` without Hatch: a script of the default environment, or a program, where this runs.

Tests put it on PATH as `hatch`, so that what a page shows runs as it is written and makes no environment. Other
environments are refused: what needs them is run by .ci/run.
"""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[2]


def main(argv: list[str]) -> NoReturn:
    """Become the command that `hatch run` would run; exit code 2 for anything else."""
    if len(argv) < 2 or argv[0] != "run" or ":" in argv[1]:
        print(f"hatch: only `run` in the default environment; found {shlex.join(argv)}", file=sys.stderr)
        raise SystemExit(2)
    default = tomllib.loads((ROOT / "hatch.toml").read_text("utf-8"))["envs"]["default"]
    variables = {key: value.replace("{root}", str(ROOT)) for key, value in default["env-vars"].items()}
    command = default["scripts"].get(argv[1], shlex.quote(argv[1]) + " {args}")
    line = command.replace("{args}", shlex.join(argv[2:]))
    os.execvpe("bash", ["bash", "-c", line], {**os.environ, **variables, "HATCH_ENV_ACTIVE": "default"})


if __name__ == "__main__":
    main(sys.argv[1:])
