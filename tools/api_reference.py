"""Write docs/api.md from the docstrings of the SDK: `hatch run docs:update`, or `hatch run docs:check`.

Reads the sources without importing them. Public is what a module lists in `__all__`, else every name without an
underscore in front.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import dedent

from tools.written_page import ROOT, write_or_check

PAGE = ROOT / "docs" / "api.md"
SOURCE = ROOT / "packages" / "sdk" / "src" / "oarbank_sdk"
MODULES = (
    "control", "duty", "supervisor", "strictjson", "canonical", "module", "events", "paths", "contracts.catalogue",
    "contracts.judge", "contracts.faults",
)  # fmt: skip
HEAD = """# API of oarbank-sdk

Written by `hatch run docs:update` from the docstrings; do not edit. Everything here but `contracts.judge` needs the
standard library alone.
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    return HEAD + "".join(_module(name) for name in MODULES)


def _module(name: str) -> str:
    tree = ast.parse((SOURCE / (name.replace(".", "/") + ".py")).read_text("utf-8"))
    public = _all(tree)
    parts = [f"\n## oarbank_sdk.{name}\n\n{_doc(tree)}\n"]
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        if node.name in public if public else not node.name.startswith("_"):
            parts += _class(node) if isinstance(node, ast.ClassDef) else [_function(node, "### ")]
    return "".join(parts)


def _all(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


def _class(node: ast.ClassDef) -> Iterator[str]:
    init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    signature = f"({_arguments(init)})" if init is not None else bases
    yield f"\n### class `{node.name}{signature}`\n\n{_doc(node)}\n"
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            yield _function(member, "#### ", method=True)


def _function(node: Function, level: str, *, method: bool = False) -> str:
    kinds = {ast.unparse(decorator) for decorator in node.decorator_list}
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    call = "" if "property" in kinds else f"({_arguments(node) if method else ast.unparse(node.args)})"
    return f"\n{level}`{node.name}{call}{returns}`\n\n{_doc(node)}\n"


def _arguments(node: Function) -> str:
    words = ast.unparse(node.args).split(", ")
    return ", ".join(words[1:] if words[0] == "self" else words)


def _doc(node: ast.Module | ast.ClassDef | Function) -> str:
    return dedent(ast.get_docstring(node) or "").strip()


def main() -> int:
    return write_or_check(PAGE, page(), "be what the docstrings say")


if __name__ == "__main__":
    raise SystemExit(main())
