"""Rates leave out what was not the batch's own time; the payload stays small."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from oarbank_llmserve.batch import Totals
from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.result import Counts, Spent, envelope, payload
from oarbank_llmserve.sink import Completion
from oarbank_sdk.contracts.judge import judge_value

ROWS = [
    # behaviour                    spent                   tokens  rate
    ("nothing held it back", Spent(10.0), 100, 10.0),
    ("the idle is left out", Spent(10.0, idle_s=6.0), 100, 25.0),
    ("so are pauses", Spent(10.0, idle_s=5.0, paused_s=3.0), 100, 50.0),
    ("no time, no rate", Spent(0.0), 100, None),
    ("clocks that disagree by a hair", Spent(10.0, idle_s=10.000_001), 100, None),
]


@pytest.mark.parametrize(("spent", "tokens", "rate"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_rate(spent: Spent, tokens: int, rate: float | None) -> None:
    assert spent.rate(tokens) == rate


def test_held_share_leaves_pauses_out() -> None:
    assert Spent(12.0, idle_s=7.0, paused_s=2.0).held(3.0) == pytest.approx(0.3)
    assert Spent(0.0).held(0.0) is None


def test_payload_agrees_with_its_schema() -> None:
    schema = json.loads(Path("packages/llmserve/schemas/result.schema.json").read_text(encoding="utf-8"))
    counts, own = Counts(2, 1, 5, 9), Totals(prompts=2, failed=1, tokens=5, units=7, busy_s=1.0, longest_unit_s=0.25)
    for texts in (None, ["a", "b"]):
        for spent in (Spent(4.0, 2.0, 1.0), Spent(0.0)):
            jsonschema.validate(payload(counts, own, spent, "0" * 64, texts), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(payload(counts, own, Spent(1.0), "no digest", None), schema)


def test_counts_are_the_jobs_and_speeds_the_attempts() -> None:
    """Of ten tokens an earlier attempt made six; this one made four in two seconds of its own."""
    counts = Counts()
    for completion in (
        Completion(0, "a", 6, 3, "end"),
        Completion(1, "b", 4, 3, "end"),
        Completion(2, "", 0, 1, "error", "x"),
    ):
        counts.count(completion)
    found = payload(counts, Totals(tokens=4, units=5, busy_s=1.0), Spent(6.0, 3.0, 1.0), "0" * 64, None, resumed=1)

    assert {name: found[name] for name in ("prompts", "failed", "tokens", "prompt_tokens", "resumed")} == {
        "prompts": 3, "failed": 1, "tokens": 10, "prompt_tokens": 7, "resumed": 1
    }  # fmt: skip
    assert (found["seconds"], found["tokens_per_s"], found["held"]) == (2.0, 2.0, 0.2)


def test_attempt_that_ran_nothing_has_no_speed() -> None:
    found = payload(Counts(1, 0, 5, 1), Totals(), Spent(0.5), "0" * 64, None, resumed=1)

    assert (found["tokens_per_s"], found["held"]) == (None, None)


def test_texts_travel_only_where_they_are_compared() -> None:
    assert "texts" not in payload(Counts(), Totals(), Spent(1.0), "0" * 64, None)


def test_largest_self_test_fits_a_result() -> None:
    """16 prompts of 256 tokens, each the stand-in's longest, in the form the runner writes."""
    texts = ["evening; " * 256] * 16
    fields = payload(Counts(16, 0, 4096, 99), Totals(), Spent(1.0), "0" * 64, texts)

    assert len(json.dumps(fields, ensure_ascii=False).encode()) < 64 * 1024


def test_envelope_names_the_artifact_by_portable_paths() -> None:
    job = Job("batch", (Prompt("a"),), "stub", module_version="1.2.3")
    found = envelope(job, {}, {"backend": "stub"}, {"x": "1"})

    assert (found["schema"], found["module_version"]) == ("llmserve/result@1", "1.2.3")
    assert found["artifacts"] == [
        {"name": "completions", "files": [{"path": "completions.jsonl", "local": "completions.jsonl"}]}
    ]
    assert found["provenance"] == {"tool_versions": {"llmserve": "1.2.3", "x": "1"}}
    with_model = envelope(replace(job, model="m.gguf"), {}, {}, {}, "0" * 64)
    assert with_model["provenance"]["model"] == {"name": "m.gguf", "sha256": "0" * 64}
    assert judge_value("result-envelope-1", with_model) == []
