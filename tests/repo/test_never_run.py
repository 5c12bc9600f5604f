"""What was never run is said once, in a mark beside the code, and one page lists all of it."""

from __future__ import annotations

import ast
import re

import pytest

from tests.repo.test_house import ROOT, own_code
from tools import never_run

CODE = {path: path.read_text("utf-8") for path in own_code() if path.is_relative_to(ROOT / "packages")}
MARKS = {path: list(never_run.marks(text)) for path, text in CODE.items()}
# Ways to say it in other words: such a sentence belongs into a mark.
LOOSE = re.compile(r"(?i)\bnever (?:been )?(?:run|tried|tested) (?:on|with|there)\b|\bnot been (?:tried|tested)\b")


def test_every_mark_is_whole_and_every_place_has_one() -> None:
    found = {where for marks in MARKS.values() for where, _ in marks}
    counted = sum(map(len, MARKS.values()))

    assert found == set(never_run.WHERES)
    assert counted == sum(len(re.findall(r"Never run:", text)) for text in CODE.values()), "a mark is not in its form"


def test_docstrings_say_it_with_a_mark_and_in_no_other_way() -> None:
    said = {
        str(path.relative_to(ROOT)): found.group()
        for path, text in CODE.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and (found := LOOSE.search(ast.get_docstring(node) or ""))
    }

    assert said == {}


def test_readers_of_other_systems_bear_a_mark() -> None:
    """A `*_read.py` touches a machine: it bears a mark until one of its kind has run it."""
    readers = [path for path in CODE if path.name.endswith("_read.py") and path.parent.name == "sources"]
    bare = [path.name for path in readers if not MARKS[path]]

    assert len(readers) >= 6
    assert bare == []


def test_mark_of_an_unknown_place_is_refused(tmp_path) -> None:
    source = tmp_path / "packages/sdk/src/oarbank_sdk/x.py"
    source.parent.mkdir(parents=True)
    source.write_text('"""A file.\n\nNever run: the Moon; tested on Earth.\n"""\n')

    with pytest.raises(ValueError, match=r"oarbank_sdk/x\.py: Never run: must name one of .*; found 'the Moon'"):
        never_run.page(tmp_path)
