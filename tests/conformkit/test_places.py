"""What a run leaves where: strays beside its directories, files held open elsewhere, secrets in what it wrote."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oarbank_conformkit import workdir
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.open_files import OpenFiles
from oarbank_conformkit.secrets_granted import by_stage
from oarbank_conformkit.workdir import Scratch


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "a module"
    (folder / "src" / "__pycache__").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("1")
    (folder / "src" / "__pycache__" / "a.pyc").write_bytes(b"1")
    return folder


def change(scratch: Scratch, how: str) -> None:
    """What a runner does."""
    assert scratch.copied is not None
    file = scratch.copied / "src" / "a.py"
    if how == "nothing":
        (scratch.workdir / "out").write_text("x")
        (scratch.data / "kept").write_text("x")
    elif how == "another content":
        file.write_text("2")
    elif how == "a new file":
        (scratch.copied / "new").write_text("x")
    elif how == "a file less":
        file.unlink()
    elif how == "bytecode":
        (scratch.copied / "src" / "__pycache__").mkdir(exist_ok=True)
        (scratch.copied / "src" / "__pycache__" / "a.pyc").write_bytes(b"2")
    elif how == "beside":
        (scratch.root / "log").write_text("x")


CHANGES = [
    ("nothing", []),
    ("another content", ["src/a.py in the bundle"]),
    ("a new file", ["new in the bundle"]),
    ("a file less", ["src/a.py in the bundle"]),
    ("bytecode", []),
    ("beside", ["log beside the workdir"]),
]


@pytest.mark.parametrize(("how", "strays"), CHANGES, ids=[row[0] for row in CHANGES])
def test_what_was_written_outside_is_named(how: str, strays: list[str], bundle: Path) -> None:
    with Scratch() as scratch:
        assert (scratch.copy_bundle(bundle) / "src" / "a.py").read_text() == "1"

        change(scratch, how)

        assert scratch.strays() == strays
    assert (bundle / "src" / "a.py").read_text() == "1"


def test_bundle_that_is_too_big_runs_where_it_stands(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workdir, "COPIED_AT_MOST", 0)

    with Scratch() as scratch:
        assert scratch.copy_bundle(bundle) == bundle
        assert scratch.copied is None
        assert scratch.strays() == []


def test_secret_is_found_in_files_and_not_in_the_one_that_grants_it() -> None:
    with Scratch() as scratch:
        scratch.secrets_file.parent.mkdir()
        scratch.secrets_file.write_text('{"token": "abc"}')
        assert scratch.holding({"token": "abc"}) == []

        (scratch.data / "cache").write_bytes(b"\x00abc\xff")

        assert scratch.holding({"token": "abc"}) == ["cache"]
        assert scratch.holding({"token": ""}) == []


GRANTED = [
    ("none", {"stages": [{"name": "a"}]}, None, {}),
    ("a canary", {"stages": [{"name": "a", "secrets": ["token"]}]}, None, {"a": {"token": "canary"}}),
    ("the fixtures'", {"stages": [{"name": "a", "secrets": ["t", "u"]}]}, {"t": "x"}, {"a": {"t": "x", "u": "canary"}}),
    ("of one stage alone", {"stages": [{"name": "a", "secrets": ["t"]}, {"name": "b"}]}, None, {"a": {"t": "canary"}}),
    ("not a list", {"stages": [{"name": "a", "secrets": "token"}]}, None, {}),
]


@pytest.mark.parametrize(("why", "manifest", "told", "granted"), GRANTED, ids=[row[0] for row in GRANTED])
def test_secrets_of_a_stage(why: str, manifest: dict, told: dict | None, granted: dict) -> None:
    fixtures = None if told is None else Fixtures("conformance.json", secrets=told)

    assert by_stage(manifest, fixtures, lambda: "canary") == granted


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux' /proc")
def test_file_held_open_for_writing_elsewhere_is_seen(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "read").write_text("x")
    files = OpenFiles([inside])

    with (inside / "a").open("wb"), (outside / "b").open("ab"), (outside / "read").open("rb"), open(os.devnull, "wb"):
        files.look([os.getpid(), 2**22 + 1])

    of_ours = {path for path in files.seen if path.startswith(str(tmp_path))}
    assert of_ours == {str(outside / "b")}
