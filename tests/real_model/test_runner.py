"""A real model in the runner, from outside: the same text under a duty, the duty held, a stop heard."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.llmserve.processes import Run, spec

DUTY = 0.3
ACKNOWLEDGED_S = 2.0  # the conformance kit's bound
STORY = "The harbour was quiet that morning, and nobody in the town knew why the boats had not come back. "
PROMPTS = [
    "The capital of France is",
    "Water boils at a temperature of",
    STORY * 20,
    "Once upon a time in a small village",
]


def batch(model: str = "small.gguf", **payload: Any) -> dict[str, Any]:
    return spec({"model": model, "max_tokens": 16, **payload}, "batch", resources={"cpu": 2, "mem_gb": 8})


def completions(run: Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run.workdir / "completions.jsonl").read_text().splitlines()]


@pytest.mark.realtime
@pytest.mark.timeout(600)
def test_text_is_the_same_under_a_duty_and_the_duty_is_held(tmp_path: Path, data: Path) -> None:
    found = {}
    for name, control in (("free", {"seq": 0}), ("governed", {"seq": 0, "gpu_duty": DUTY})):
        with Run(tmp_path / name, batch(prompts=PROMPTS), control=control, data=data) as run:
            assert run.wait_for_exit(250.0) == 0  # 20 s on an idle machine
            assert run.err == b""
            found[name] = (completions(run), run.json("result.json"), run.events("gpu_duty"))

    assert found["free"][0] == found["governed"][0]
    lines, result, reports = found["governed"]
    assert "Paris" in lines[0]["text"]
    assert all(len(line["text"].split()) >= 4 for line in lines)
    assert lines[2]["prompt_tokens"] > 300
    assert {report["data"]["duty"] for report in reports} == {DUTY}
    assert {report["data"]["device"] for report in reports} == {result["effective"]["device"]}
    assert all(report["value"] <= DUTY + 0.1 for report in reports), reports
    payload = result["payload"]
    assert payload["units"] >= 16 + len(PROMPTS)  # each step of all is one, and each prompt's parts are some
    assert payload["idle_s"] > payload["seconds"]
    assert result["effective"]["backend"] == "llamacpp"
    assert result["provenance"]["tool_versions"].keys() == {"llmserve", "llama-cpp-python"}


STOPS = [
    # in the middle of            control document
    ("a long prefill", {"seq": 1}),
    ("a long prefill at 0.3", {"seq": 1, "gpu_duty": DUTY}),
    ("an idle", {"seq": 1, "gpu_duty": 0.0005}),
]


@pytest.mark.realtime
@pytest.mark.parametrize("control", [row[1] for row in STOPS], ids=[row[0] for row in STOPS])
def test_stop_is_acknowledged(tmp_path: Path, data: Path, control: dict[str, Any]) -> None:
    with Run(tmp_path / "w", batch(prompts=[STORY * 300]), data=data) as run:
        run.wait_for_phase()
        run.control(control)
        time.sleep(0.5)  # the prefill takes many seconds
        nudged_s = run.control({"seq": 2, "stop": True})
        run.wait_for((run.workdir / "failure.json").exists, "an acknowledgement")
        took_s = time.monotonic() - nudged_s
        assert run.wait_for_exit() == 75

    assert took_s < ACKNOWLEDGED_S
    assert not {"result.json", "completions.jsonl"} & run.written()


def test_threads_change_on_the_way_and_the_text_does_not(tmp_path: Path, data: Path) -> None:
    texts = []
    for name, threads in (("one", 1), ("two", 2)):
        with Run(tmp_path / name, batch(prompts=PROMPTS[:1], max_tokens=24), data=data) as run:
            run.wait_for_phase()
            run.control({"seq": 1, "threads": threads})
            assert run.wait_for_exit() == 0
            texts.append(completions(run)[0]["text"])

    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("text.gguf", "model text.gguf: must be a GGUF file"),
        ("empty.gguf", "model empty.gguf: must be a GGUF file"),
        ("noise.gguf", "model noise.gguf: llama.cpp does not load it"),
        ("half.gguf", "model half.gguf: llama.cpp does not load it"),
        ("absent.gguf", "models/absent.gguf: not on this node"),
    ],
)
def test_file_that_is_no_model_is_refused(tmp_path: Path, data: Path, name: str, detail: str) -> None:
    with Run(tmp_path / "w", batch(name, prompts=["a"]), data=data) as run:
        assert run.wait_for_exit() == 3
        failure = run.json("failure.json")

    assert (failure["reason"], failure["fault"]) == ("llmserve/no_model", "host")
    assert detail in failure["detail"]
    assert run.written() == {"failure.json"}
    assert len(run.err.splitlines()) == 1


def test_prompt_too_long_for_the_model_does_not_end_the_batch(tmp_path: Path, data: Path) -> None:
    prompts = ["word " * 9000, "", "The capital of France is"]
    with Run(tmp_path / "w", batch(prompts=prompts, max_tokens=4), data=data) as run:
        assert run.wait_for_exit() == 0
        lines = completions(run)

    assert "the model takes 8192 at most" in lines[0]["error"]
    assert lines[1]["error"] == "the prompt has no tokens"
    assert "Paris" in lines[2]["text"]
    assert run.json("result.json")["payload"]["failed"] == 2


def test_stop_string_and_end_of_text(tmp_path: Path, data: Path) -> None:
    chat = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
    with Run(tmp_path / "w", batch(prompts=[PROMPTS[0], chat], max_tokens=64, stop=["."]), data=data) as run:
        assert run.wait_for_exit() == 0
        first, second = completions(run)

    assert (first["text"], first["finish"]) == (" Paris", "stop")
    assert second["finish"] in ("end", "stop")
