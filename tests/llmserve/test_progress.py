"""Progress events: whole lines, one a second, never at the batch's expense."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oarbank_llmserve.progress import ProgressEvents


class Clock:
    def __init__(self) -> None:
        self.now_s = 3.5

    def __call__(self) -> float:
        return self.now_s


def test_events_come_once_a_second_and_at_the_end(tmp_path: Path) -> None:
    path, clock = tmp_path / "events.ndjson", Clock()
    told = ProgressEvents(str(path), 2, clock=clock, wall=lambda: 1000.0 + clock.now_s)
    for tokens in range(25):
        clock.now_s += 0.125  # exact in binary
        told(tokens // 24, tokens)
    told(2, 30)
    told(2, 31)

    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(event["fraction"], event["msg"]) for event in events] == [
        (0.0, "0 of 2 prompts, 7 tokens"),
        (0.0, "0 of 2 prompts, 15 tokens"),
        (0.0, "0 of 2 prompts, 23 tokens"),
        (1.0, "2 of 2 prompts, 30 tokens"),
    ]
    assert {event["kind"] for event in events} == {"progress"}


def test_events_are_appended_to_what_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "events.ndjson"
    path.write_text("{}\n")
    ProgressEvents(str(path), 1)(1, 1)

    assert len(path.read_text().splitlines()) == 2


def test_events_file_that_cannot_be_written_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    told = ProgressEvents(str(tmp_path / "gone/events.ndjson"), 3, clock=clock)
    for done in (1, 2, 3):
        clock.now_s += 2
        told(done, done)

    assert capsys.readouterr().err.count("no progress events from here on") == 1


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ProgressEvents(None, 1)(1, 1)

    assert not list(tmp_path.iterdir())
