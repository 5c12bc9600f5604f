"""`oarbank-llmserve module DIR`: a folder that holds all of the module that a node needs, and nothing else.

The module's own files come from this installation: from the wheel, or from the checkout of an editable one. Beside them
go the runner's and coordinator's half of our two packages, so that `python -I DIR/llmserve_runner.py` finds them with
nothing else on the path. The parts for people and for tests stay behind, and so does whatever Python compiled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import oarbank_llmserve
import oarbank_sdk

MANIFEST = "oarbank-module.toml"
FILES = (
    MANIFEST, "llmserve_runner.py", "llmserve_module.py", "conformance.json", "LICENSE", "goldens/selftest.json",
    "schemas/result.schema.json", "schemas/queue_prompts.json",
)  # fmt: skip
LOCKED = ("pyproject.toml", "uv.lock")  # what a locked environment is made of
# What only people's commands and schema checks need: rich, jsonschema and pydantic are on no node.
LEFT_BEHIND = {
    "oarbank_llmserve": {
        "appetite.py", "arguments.py", "batch_command.py", "bundle", "cli.py", "dispatch.py", "gguf.py",
        "inventory.py", "module_dir.py", "outfile.py", "prompts_text.py", "screen.py", "usage.py",
    },
    "oarbank_sdk": {
        "cli.py", "commands", "contracts", "dispatch.py", "outputs.py", "schemas", "templates", "whole_file.py",
    },
}  # fmt: skip
_PLAIN = 'runtime = { kind = "python" } '


class CannotWrite(Exception):
    """One line for a person: why there is no module folder."""


def write_module(folder: Path, uv: Path | None = None, python: str = "3.12.x") -> list[str]:
    """Write the module to `folder`, which must be absent or empty; the files written, in order.

    `uv` is a folder with pyproject.toml and uv.lock: the runner then runs in that locked environment. Raises
    `CannotWrite`, and OSError.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotWrite(f"{folder}: must be a new or an empty folder; found something in it. Name another")
    if uv is not None and (missing := [name for name in LOCKED if not (uv / name).is_file()]):
        remedy = "Run `uv lock` in it" if missing == ["uv.lock"] else "Name the folder of a locked project"
        raise CannotWrite(f"--uv: must hold {' and '.join(LOCKED)}; found no {missing[0]} in {uv}. {remedy}")
    source = bundle_folder()
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        _copy(source / name, folder / name)
    for package in (oarbank_llmserve, oarbank_sdk):
        root = Path(package.__file__ or "").parent
        for path in _runner_half(root):
            _copy(path, folder / root.name / path.relative_to(root))
    if uv is not None:
        for name in LOCKED:
            _copy(uv / name, folder / name)
        _lock_runner(folder / MANIFEST, python)
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def bundle_folder() -> Path:
    """Where this installation keeps the module's own files."""
    package = Path(oarbank_llmserve.__file__ or "").parent
    for place in (package / "bundle", package.parent.parent):
        if (place / MANIFEST).is_file():
            return place
    raise CannotWrite(f"{package}: must hold the module's files; found none. Install oarbank-llmserve again")


def _runner_half(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        within = path.relative_to(root)
        left = within.parts[0] in LEFT_BEHIND[root.name] or "__pycache__" in within.parts
        if path.is_file() and not left and path.suffix in (".py", ".typed"):
            yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)  # without its mode and times: a folder of equal content is an equal folder


def _lock_runner(manifest: Path, python: str) -> None:
    """Have the runner, and it alone, run in the locked environment: the coordinator needs no backend."""
    before, found, runner = manifest.read_text("utf-8").partition("\n[runner]\n")
    if not found or _PLAIN not in runner:
        raise CannotWrite(f"{manifest}: must hold the runner's runtime; found none. Install oarbank-llmserve again")
    line = f'runtime = {{ kind = "uv", lock = "uv.lock", python = "{python}" }} '
    manifest.write_text(before + found + runner.replace(_PLAIN, line, 1), encoding="utf-8", newline="\n")
