"""Write what callers may use of each package: `hatch run names`; `--check` compares, as a test does.

tests/contracts/public_names/PACKAGE.txt holds a line for each public name of the modules in `PUBLIC`: what a module
lists in `__all__`, else what it defines without an underscore in front; a class with its methods, fields and how it is
called. Anything else may change in any version. Here the packages are imported.
"""

from __future__ import annotations

import ast
import inspect
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "contracts" / "public_names"
PUBLIC = {
    "oarbank_sdk": (
        "control", "duty", "supervisor", "module", "events", "strictjson", "canonical", "paths",
        "contracts", "contracts.catalogue", "contracts.judge", "contracts.faults",
    ),
    # How to measure a job, and how to bring a reader of one's own.
    "oarbank_agent_check": ("readings", "gpu_readings", "gpu_meter", "tree", "sources.cpu_threads", "core"),
    # Programs: their faces are commands, documents and exit codes; the kit's also the ids of its rules.
    "oarbank_conformkit": (),
    "oarbank_llmserve": (),
}  # fmt: skip


def names(package: str) -> list[str]:
    """Return the lines for a package, sorted."""
    lines = [line for name in PUBLIC[package] for line in _module(import_module(f"{package}.{name}"))]
    if package == "oarbank_conformkit":
        lines += [f"rule {id}" for id in import_module(f"{package}.rules").catalogue()]
    return sorted(lines + _entries(package))


def _entries(package: str) -> list[str]:
    """The commands and plug-ins that a package declares."""
    folder = ROOT / "packages" / package.removeprefix("oarbank_").replace("_", "-")
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    return [f"{group} {name}" for group, entries in groups.items() for name in entries]


def _module(module: ModuleType) -> Iterator[str]:
    listed = getattr(module, "__all__", None)
    for name in listed if listed is not None else _defined(module):
        value = getattr(module, name)
        place = f"{module.__name__}.{name}"
        yield place + _call(value)
        if inspect.isclass(value) and not issubclass(value, BaseException) and not hasattr(value, "model_fields"):
            yield from _members(place, value)


def _defined(module: ModuleType) -> Iterator[str]:
    """The names that a module itself defines, without an underscore in front."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [target.id for target in targets if isinstance(target, ast.Name)]
        else:
            continue
        yield from (name for name in found if not name.startswith("_"))


def _members(place: str, cls: type[Any]) -> Iterator[str]:
    """The methods and fields that a class itself defines."""
    own = dict.fromkeys([*vars(cls), *vars(cls).get("__annotations__", {})])
    for name in own:
        if not name.startswith("_"):
            value = inspect.getattr_static(cls, name, None)
            yield f"{place}.{name}" + (_call(value) if inspect.isfunction(value) else "")


def _call(value: Any) -> str:
    """How it is called: its parameters with `=` where one may be left out; "" for what is no callable."""
    if hasattr(value, "model_fields") or not (inspect.isclass(value) or inspect.isfunction(value)):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    bare = [
        one.replace(annotation=one.empty, default=one.empty if one.default is one.empty else _Left())
        for one in signature.parameters.values()
    ]
    return str(inspect.Signature(bare))


class _Left:
    """A default, whatever it is."""

    def __repr__(self) -> str:
        return ""


def main() -> int:
    """Write the lists, or with --check say which names differ; exit code 1 when some do."""
    differing = 0
    FOLDER.mkdir(exist_ok=True)
    for package in PUBLIC:
        path, fresh = FOLDER / f"{package}.txt", names(package)
        listed = path.read_text("utf-8").splitlines() if path.exists() else []
        if "--check" not in sys.argv[1:]:
            path.write_text("".join(f"{line}\n" for line in fresh), encoding="utf-8", newline="\n")
            continue
        for line in sorted(set(listed) ^ set(fresh)):
            differing = 1
            print(f"{path.name}: {'gone' if line in listed else 'new'}: {line}")
    return differing


if __name__ == "__main__":
    raise SystemExit(main())
