"""Completions on disk: in order, flushed, and under their name only when all are there."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from oarbank_llmserve.sink import Completion, JsonlSink


def done(index: int, text: str = "x") -> Completion:
    return Completion(index, text, 1, 2, "end")


def test_lines_come_in_order_whatever_the_order_of_the_completions(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    with JsonlSink(path) as sink:
        for index in (2, 0, 3, 1):
            sink.put(done(index))
        sink.finish()

    assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]
    assert sink.digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_line_is_on_disk_as_soon_as_those_before_it(tmp_path: Path) -> None:
    with JsonlSink(tmp_path / "c.jsonl") as sink:
        sink.put(done(1))
        assert (tmp_path / "c.jsonl.part").read_bytes() == b""
        sink.put(done(0, "a\nb🌊"))
        assert (tmp_path / "c.jsonl.part").read_bytes().count(b"\n") == 2


def test_unfinished_batch_has_no_file_of_the_final_name(tmp_path: Path) -> None:
    with JsonlSink(tmp_path / "c.jsonl") as sink:
        sink.put(done(0))

    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl.part"]


def test_gap_is_an_error_and_not_a_shorter_file(tmp_path: Path) -> None:
    with JsonlSink(tmp_path / "c.jsonl") as sink:
        sink.put(done(1))
        with pytest.raises(ValueError, match="completion 0 is missing"):
            sink.finish()


def test_failed_prompt_has_a_line_that_says_why(tmp_path: Path) -> None:
    with JsonlSink(tmp_path / "c.jsonl") as sink:
        sink.put(Completion(0, "par", 1, 2, "error", "no cell"))
        sink.finish()

    assert json.loads((tmp_path / "c.jsonl").read_text()) == {
        "index": 0,
        "text": "par",
        "tokens": 1,
        "prompt_tokens": 2,
        "finish": "error",
        "error": "no cell",
    }
