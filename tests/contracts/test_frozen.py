"""A frozen contract stays: its digest is on record, and a change that breaks what others built on is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.examples import SCHEMAS
from tools import freeze

KIND = "runner-control-1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The schemas, where they may be changed."""
    return Path(shutil.copytree(SCHEMAS, tmp_path / "schemas", ignore=shutil.ignore_patterns("examples")))


def change(folder: Path, edit: Callable[[dict[str, Any]], object], kind: str = KIND) -> None:
    path = folder / f"{kind}.schema.json"
    schema = json.loads(path.read_text("utf-8"))
    edit(schema)
    path.write_text(json.dumps(schema), encoding="utf-8")


def test_frozen_contracts_are_what_the_record_says() -> None:
    assert freeze.main(["--check"]) == 0, "a reviewed change: `hatch run gen:freeze`"
    assert set(json.loads((SCHEMAS / "frozen.json").read_text("utf-8"))) == set(freeze.frozen_kinds())
    assert len(freeze.frozen_kinds()) >= 6


ADDED = {"description": "New.", "type": "boolean", "default": False}
# what is done to the schema of a control document
ALLOWED: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
    ("an optional field with a default is added", lambda s: s["properties"].update(new=ADDED)),
    ("an optional object with fields of its own is added", lambda s: s["properties"].update(
        new={"type": "object", "default": {}, "required": ["x"], "properties": {"x": {"type": "string"}}})),
    ("a description gets other words", lambda s: s["properties"]["seq"].update(description="Counts.")),
]  # fmt: skip
REFUSED: list[tuple[str, Callable[[dict[str, Any]], object], str]] = [
    ("a field is removed", lambda s: s["properties"].pop("pause"), "/pause: must stay"),
    ("a field is renamed", lambda s: s["properties"].update(hold=s["properties"].pop("pause")), "/pause: must stay"),
    ("a bound gets tighter", lambda s: s["properties"]["gpu_duty"].update(maximum=0.5), "/gpu_duty: must ask what"),
    ("a bound gets wider", lambda s: s["properties"]["gpu_duty"].update(maximum=2), "/gpu_duty: must ask what"),
    ("a type is taken away", lambda s: s["properties"]["threads"].update(type="integer"), "/threads: must ask what"),
    ("a default is another one", lambda s: s["properties"]["stop"].update(default=True), "/stop: must ask what"),
    ("a field must be there", lambda s: s["required"].append("stop"), "/stop: must ask what"),
    ("unknown keys are refused", lambda s: s.update(additionalProperties=False), "/{}: must ask what"),
    ("a new field must be there", lambda s: (s["properties"].update(new=ADDED), s["required"].append("new")),
     "/new: a new field must be optional"),
    ("a new field has no default", lambda s: s["properties"].update(new={"type": "string"}),
     "/new: a new field must have"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "edit"), ALLOWED)
def test_change_is_seen_and_may_be_recorded(
    what: str, edit: Callable[[dict[str, Any]], object], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder, edit)

    assert freeze.main(["--check"], folder) == 1
    assert f"/{KIND}: must be what the schema says" in capsys.readouterr().out
    assert freeze.main([], folder) == 0
    assert freeze.main(["--check"], folder) == 0


@pytest.mark.parametrize(("what", "edit", "told"), REFUSED)
def test_change_that_breaks_others_is_never_recorded(
    what: str, edit: Callable[[dict[str, Any]], object], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "frozen.json").read_bytes()
    change(folder, edit)

    assert freeze.main([], folder) == 1
    assert f"{KIND}: {told}" in capsys.readouterr().out
    assert (folder / "frozen.json").read_bytes() == before


def test_shared_definition_that_changes_is_seen_in_whoever_uses_it(folder: Path) -> None:
    texts = {kind: (folder / f"{kind}.schema.json").read_text("utf-8") for kind in freeze.frozen_kinds()}
    users = [kind for kind, text in texts.items() if "common.schema.json" in text]
    assert users
    change(folder, lambda s: [one.update(maxLength=3) for one in s["$defs"].values()], "common")

    _, changed, broken = freeze.compare(folder)

    assert changed == sorted(users)
    assert {one.partition(":")[0] for one in broken} == set(users)


def test_frozen_contract_cannot_go_back_to_draft(folder: Path) -> None:
    page = folder / "README.md"
    page.write_text(page.read_text("utf-8").replace("| 1 | frozen |", "| 1 | draft |", 1), encoding="utf-8")

    _, _, broken = freeze.compare(folder)

    assert broken == [f"{KIND}: must stay frozen; found it gone from README.md"]
