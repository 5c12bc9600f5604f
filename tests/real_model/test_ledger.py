"""A real model behind a runner that is killed: finished prompts are kept, the result is an undisturbed run's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.llmserve.processes import Run, spec

TOPICS = ("rivers", "boats", "bread", "winter", "iron", "music", "bees", "roads")
PROMPTS = [
    {"prompt": f"A short text about {topic}:", "id": topic, "max_tokens": 6 + 6 * n} for n, topic in enumerate(TOPICS)
]
SAMPLED = [{**prompt, "temperature": 0.8, "seed": n} for n, prompt in enumerate(PROMPTS)]
COUNTS = ("prompts", "failed", "tokens", "prompt_tokens", "digest")


def outcome(run: Run) -> tuple[dict[str, Any], bytes]:
    assert run.wait_for_exit() == 0
    payload = run.json("result.json")["payload"]
    return {name: payload[name] for name in COUNTS}, (run.workdir / "completions.jsonl").read_bytes()


@pytest.mark.parametrize("prompts", [PROMPTS, SAMPLED], ids=["greedy", "sampled"])
def test_killed_runner_goes_on_and_comes_to_the_same_result(
    tmp_path: Path, data: Path, prompts: list[dict[str, Any]]
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "models").symlink_to(data / "models")
    task = spec({"prompts": prompts, "model": "small.gguf"}, "batch", resources={"cpu": 1})
    with Run(tmp_path / "undisturbed", task, data=data) as run:
        whole = outcome(run)

    def kept() -> int:
        return sum(path.read_bytes().count(b"\n") for path in own.glob("ledger/*.jsonl"))

    with Run(tmp_path / "killed", task, data=own) as run:
        run.wait_for(lambda: kept() >= 3, "three finished prompts")
        run.process.kill()
    finished = kept()
    with Run(tmp_path / "again", task, data=own) as run:
        found = outcome(run)

    assert run.json("result.json")["payload"]["resumed"] == finished
    assert found == whole
    assert kept() == 0
    digest = json.loads((own / "model-digests.json").read_text())
    assert [one["sha256"] for one in digest.values()] == [run.json("result.json")["provenance"]["model"]["sha256"]]
