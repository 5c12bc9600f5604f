"""Where a model is: one entry of the models folder, and nothing outside it is ever opened."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oarbank_llmserve.job import Refusal
from oarbank_llmserve.models import Found, find_model
from oarbank_llmserve.payload import read_payload
from tests.llmserve.test_job import BAD_MODELS


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with models, and a secret beside them."""
    (tmp_path / "data/models/mlx-model").mkdir(parents=True)
    for name in ("data/models/m.gguf", "data/models/M.GGUF", "data/models/notes.txt", "data/secret.gguf", "other.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("name", "kind"), [("m.gguf", "gguf"), ("M.GGUF", "gguf"), ("mlx-model", "folder"), ("notes.txt", "other")]
)
def test_model_is_found_below_models(data: Path, name: str, kind: str) -> None:
    assert find_model(str(data), name) == Found(data / "models" / name, kind)


def test_model_that_is_not_there_is_the_nodes_fault(data: Path) -> None:
    answer = find_model(str(data), "absent.gguf")

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit, answer.fault) == ("llmserve/no_model", 3, "host")


@pytest.mark.parametrize(
    ("begins", "detail"),
    [
        (b"I am a text file.\n", "model m.gguf: must be a GGUF file; its first bytes are b'I am'. Fetch it again"),
        (b"", "model m.gguf: must be a GGUF file; it is empty. Fetch it again"),
        (b"GGU", "its first bytes are b'GGU'"),
    ],
)
def test_file_that_does_not_begin_as_a_model_is_refused(data: Path, begins: bytes, detail: str) -> None:
    (data / "models/m.gguf").write_bytes(begins)
    answer = find_model(str(data), "m.gguf")

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit, answer.fault) == ("llmserve/no_model", 3, "host")
    assert detail in answer.detail


@pytest.mark.parametrize("data_dir", [None, ""])
def test_without_a_data_directory_there_is_no_model(data_dir: str | None) -> None:
    answer = find_model(data_dir, "m.gguf")

    assert isinstance(answer, Refusal)
    assert "OARBANK_MODULE_DATA" in answer.detail


def test_link_is_the_owners_word_and_followed_wherever_it_leads(data: Path) -> None:
    (data / "models/out.gguf").symlink_to(data.parent / "other.gguf")
    (data / "models/in.gguf").symlink_to("m.gguf")
    (data / "models/dangling.gguf").symlink_to("absent.gguf")
    (data / "models/round.gguf").symlink_to("round.gguf")

    assert isinstance(find_model(str(data), "out.gguf"), Found)
    assert isinstance(find_model(str(data), "in.gguf"), Found)
    assert isinstance(find_model(str(data), "dangling.gguf"), Refusal)
    assert isinstance(find_model(str(data), "round.gguf"), Refusal)


_opened: list[str] | None = None


def _audit(event: str, args: tuple[object, ...]) -> None:
    if _opened is not None and event in ("open", "os.listdir", "os.scandir") and isinstance(args[0], (str, bytes)):
        _opened.append(os.fsdecode(args[0]))


def test_no_name_makes_anything_be_opened_outside_models(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    global _opened
    monkeypatch.chdir(data / "models")
    names = [*BAD_MODELS, "m.gguf", "absent.gguf", "../secret.gguf", "../../other.gguf", str(data / "secret.gguf")]
    sys.addaudithook(_audit)  # cannot be taken away again, so it listens only while `_opened` is a list
    _opened = []
    try:
        found = []
        for name in names:
            job = read_payload("batch", {"prompts": ["a"], "model": name})
            if not isinstance(job, Refusal):
                found.append(find_model(str(data), job.model or ""))
        with (data / "models/m.gguf").open("rb"):
            pass
        opened = _opened
    finally:
        _opened = None

    assert [type(answer).__name__ for answer in found] == ["Found", "Refusal"]
    assert opened == [str(data / "models/m.gguf")] * 2  # its first bytes were read; the hook hears, and no more
