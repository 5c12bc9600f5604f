"""Write the tables of rules in docs/conformance.md from rules.toml: `hatch run docs:update`, or `hatch run docs:check`.

The words between the tables are written by people. Every suite of rules has its place in the page, a heading and a pair
of marks, and a suite without one is an error: a rule that nobody explains is not documented by a table.
"""

from __future__ import annotations

import re
import tomllib

from tools.written_page import ROOT, write_or_check

PAGE = ROOT / "docs" / "conformance.md"
RULES = ROOT / "packages" / "conformkit" / "src" / "oarbank_conformkit" / "rules.toml"
PLACE = re.compile(r"<!-- rules: ([a-z_]+) -->\n.*?<!-- end -->", re.DOTALL)


class Unplaced(Exception):
    """The page and the rules do not fit; the text says where."""


def filled(page: str, rules: list[dict[str, str]]) -> str:
    """Return the page with a fresh table in each place. Raises `Unplaced`."""
    suites: dict[str, list[dict[str, str]]] = {}
    for rule in rules:
        suites.setdefault(rule["id"].partition(".")[0], []).append(rule)
    placed = PLACE.findall(page)
    wrong = sorted(set(suites) ^ set(placed)) or sorted(name for name in placed if placed.count(name) > 1)
    if wrong:
        raise Unplaced(
            f"docs/conformance.md: each suite of rules.toml must have one place, `<!-- rules: {wrong[0]} -->`; found "
            f"{placed.count(wrong[0])} of {wrong[0]} and {len(suites.get(wrong[0], ()))} rules. Write a section."
        )
    return PLACE.sub(lambda place: f"<!-- rules: {place[1]} -->\n{_table(suites[place[1]])}<!-- end -->", page)


def _table(rules: list[dict[str, str]]) -> str:
    rows = "".join(
        f"| `{rule['id']}` | {rule['level']} | {_cell(rule['says'])} | {_cell(rule['source'])} |\n" for rule in rules
    )
    return f"| Rule | Level | What must hold | Where it comes from |\n| --- | --- | --- | --- |\n{rows}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    try:
        fresh = filled(PAGE.read_text("utf-8"), tomllib.loads(RULES.read_text("utf-8"))["rule"])
    except Unplaced as exc:
        print(exc)
        return 1
    return write_or_check(PAGE, fresh, "hold the rules of rules.toml")


if __name__ == "__main__":
    raise SystemExit(main())
