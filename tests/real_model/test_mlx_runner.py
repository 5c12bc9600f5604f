"""MLX in the runner, from outside: the same text under a duty, the duty held, a stop heard, a broken model refused."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.llmserve.processes import Run, spec
from tests.real_model.mlx_model import write_tiny

DUTY = 0.3
PROMPTS = ["The capital of France is", "Once upon a time"]


def batch(**payload: Any) -> dict[str, Any]:
    return spec({"model": "small", "max_tokens": 5, **payload}, "batch", resources={"cpu": 2, "mem_gb": 8})


@pytest.fixture
def data(tmp_path: Path, mlx_model: Path) -> Path:
    """A module data directory with the model."""
    shutil.copytree(mlx_model, tmp_path / "data/models/small", copy_function=os.link)
    return tmp_path / "data"


@pytest.mark.realtime
def test_text_is_the_same_under_a_duty_and_the_duty_is_held(tmp_path: Path, data: Path) -> None:
    found = {}
    for name, control in (("free", {"seq": 0}), ("governed", {"seq": 0, "gpu_duty": DUTY})):
        with Run(tmp_path / name, batch(prompts=PROMPTS, longest_ms=100), control=control, data=data) as run:
            assert run.wait_for_exit(110.0) == 0  # 8 s on an idle machine
            assert run.err == b""
            lines = (run.workdir / "completions.jsonl").read_text().splitlines()
            found[name] = ([json.loads(line) for line in lines], run.json("result.json"), run.events("gpu_duty"))

    assert found["free"][0] == found["governed"][0]
    lines, result, reports = found["governed"]
    assert "Paris" in lines[0]["text"]
    assert all(report["value"] <= DUTY + 0.1 for report in reports), reports
    assert {report["data"]["device"] for report in reports} == {result["effective"]["device"]}
    assert result["effective"]["backend"] == "mlx"  # auto, for a folder
    assert result["payload"]["idle_s"] > result["payload"]["seconds"]
    assert {"llmserve", "mlx", "mlx-lm"} <= result["provenance"]["tool_versions"].keys()


@pytest.mark.realtime
def test_stop_in_the_middle_of_a_long_prompt_is_acknowledged(tmp_path: Path, data: Path) -> None:
    with Run(tmp_path / "w", batch(prompts=["The harbour was quiet that morning. " * 100]), data=data) as run:
        run.wait_for_phase()
        time.sleep(0.5)  # the prompt takes half a minute
        nudged_s = run.control({"seq": 1, "stop": True})
        run.wait_for((run.workdir / "failure.json").exists, "an acknowledgement")
        took_s = time.monotonic() - nudged_s
        assert run.wait_for_exit() == 75

    assert took_s < 4.0  # a part of the prompt is half a second on an idle machine; the kit allows 2 s there


BROKEN = [
    (
        lambda folder: os.truncate(folder / "model.safetensors", 1000),
        "model small: model.safetensors: must be a safetensors file",
    ),
    (
        lambda folder: (folder / "config.json").write_text('{"model_type": "unheard_of"}'),
        "model small: MLX does not load it: Model type unheard_of not supported.",
    ),
]


@pytest.mark.parametrize(("break_it", "detail"), BROKEN, ids=[detail[13:40] for _, detail in BROKEN])
def test_broken_model_is_refused(tmp_path: Path, break_it: Callable[[Path], object], detail: str) -> None:
    break_it(write_tiny(tmp_path / "data/models/small"))
    with Run(tmp_path / "w", batch(prompts=["a"]), data=tmp_path / "data") as run:
        assert run.wait_for_exit() == 3
        failure = run.json("failure.json")

    assert (failure["reason"], failure["fault"]) == ("llmserve/no_model", "host")
    assert failure["detail"].startswith(detail)
    assert len(run.err.splitlines()) == 1
