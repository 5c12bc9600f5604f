"""Of a job's bounds, the grant's and the owner's, the smallest holds; a model's digest is taken once."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve.job import Job, Prompt, Refusal
from oarbank_llmserve.limits import bounded, granted_threads
from oarbank_llmserve.model_digest import CACHE, model_digest
from tests.llmserve.processes import Run, spec

BARE = Job("batch", (Prompt("a"),), "stub")
OWN = Job("batch", (Prompt("a"),), "stub", longest_s=0.05, memory_gb=4.0)
BOUNDS: list[tuple[str, Job, Any, Any, float | None, float | None]] = [
    # behaviour                          job   resources                 settings                        s     GB
    ("nobody says anything", BARE, None, {}, None, None),
    ("the job", OWN, None, {}, 0.05, 4.0),
    ("the owner, tighter", OWN, None, {"longest_ms": 20, "memory_gb": 2}, 0.02, 2.0),
    ("the owner, looser", OWN, None, {"longest_ms": 500, "memory_gb": 64}, 0.05, 4.0),
    ("the grant", BARE, {"mem_gb": 8, "cpu": 2}, {}, None, 8.0),
    ("the grant, tighter than the owner", BARE, {"mem_gb": 1}, {"memory_gb": 2}, None, 1.0),
    ("a grant that says nothing usable", BARE, {"mem_gb": "8"}, {"other": 1}, None, None),
    ("a grant of nothing", BARE, {"mem_gb": 0}, {"longest_ms": None}, None, None),
    ("a grant that is a list", BARE, [1], {}, None, None),
]


@pytest.mark.parametrize(
    ("job", "resources", "settings", "longest_s", "memory_gb"), [row[1:] for row in BOUNDS], ids=[r[0] for r in BOUNDS]
)
def test_smallest_bound_holds(
    job: Job, resources: Any, settings: Any, longest_s: float | None, memory_gb: float | None
) -> None:
    answer = bounded(job, resources, settings)

    assert isinstance(answer, Job)
    assert (answer.longest_s, answer.memory_gb) == (longest_s, memory_gb)


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ([], "settings: must be an object; found a list"),
        ({"longest_ms": 0}, "settings: /longest_ms: must be a number from 1 to 60000; found 0"),
        ({"memory_gb": "8"}, "settings: /memory_gb: must be a number from 0.01 to 1024; found 8"),
    ],
)
def test_setting_that_cannot_be_used_is_the_nodes_fault(settings: Any, detail: str) -> None:
    answer = bounded(BARE, None, settings)

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit, answer.fault, answer.detail) == ("llmserve/bad_settings", 3, "host", detail)


@pytest.mark.parametrize(
    ("resources", "threads"),
    [(None, None), ({"cpu": 2}, 2), ({"cpu": 0.5}, 1), ({"cpu": True}, None), ({"cpu": 1e9}, 1024)],
)
def test_granted_threads(resources: Any, threads: int | None) -> None:
    assert granted_threads(resources) == threads


@pytest.mark.parametrize(
    ("text", "status"), [('{"longest_ms": 5}', 0), ('{"longest_ms": "x"}', 3), ("{", 3), (None, 0)], ids=str
)
def test_runner_reads_the_owners_settings(tmp_path: Path, text: str | None, status: int) -> None:
    if text is not None:
        (tmp_path / "settings.json").write_text(text)
    env = {"OARBANK_SETTINGS_FILE": str(tmp_path / "settings.json")}
    with Run(tmp_path / "w", spec({"prompts": ["a"], "max_tokens": 3, "backend": "stub"}, "batch"), env=env) as run:
        assert run.wait_for_exit() == status
        if status:
            assert run.json("failure.json")["reason"] == "llmserve/bad_settings"
        elif text is not None:
            assert run.json("result.json")["payload"]["units"] > 4  # the steps were cut


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "models/mlx/sub").mkdir(parents=True)
    (tmp_path / "models/m.gguf").write_bytes(b"GGUF" + b"x" * 100)
    for name in ("config.json", "model.safetensors", "sub/more.json", ".git", "sub/.cache"):
        (tmp_path / "models/mlx" / name).write_text(name)
    return tmp_path


def test_digest_of_a_file_is_that_of_its_bytes(data: Path) -> None:
    model = data / "models/m.gguf"

    assert model_digest(model, str(data)) == hashlib.sha256(model.read_bytes()).hexdigest()


def test_digest_of_a_folder_is_that_of_its_files_and_not_of_hidden_ones(data: Path) -> None:
    folder = data / "models/mlx"
    first = model_digest(folder, None)
    (folder / ".git").write_text("other")
    assert model_digest(folder, None) == first
    (folder / "sub/more.json").write_text("xther")
    second = model_digest(folder, None)
    (folder / "sub/more.json").rename(folder / "sub/most.json")

    assert len({first, second, model_digest(folder, None)}) == 3


def test_digest_is_taken_again_when_size_or_time_changed_and_else_kept(data: Path) -> None:
    model, read = data / "models/m.gguf", []
    first = model_digest(model, str(data), lambda: read.append(1))
    assert model_digest(model, str(data), lambda: read.append(2)) == first
    os.utime(model, ns=(1, 1))
    assert model_digest(model, str(data), lambda: read.append(3)) == first
    model.write_bytes(b"GGUF" + b"y" * 100)
    assert model_digest(model, str(data), lambda: read.append(4)) != first

    assert read == [1, 3, 4]
    assert list(json.loads((data / CACHE).read_text())) == [str(model)]


@pytest.mark.parametrize("cache", ["", "{", "[]", "7", '{"x": 1}', "[" * 5000])
def test_cache_that_cannot_be_read_costs_the_time_and_nothing_else(data: Path, cache: str) -> None:
    (data / CACHE).write_text(cache)
    model = data / "models/m.gguf"

    assert model_digest(model, str(data)) == hashlib.sha256(model.read_bytes()).hexdigest()


def test_stop_ends_the_reading(data: Path) -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        model_digest(data / "models/m.gguf", str(data), stop)
