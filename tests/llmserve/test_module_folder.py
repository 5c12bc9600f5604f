"""The module directory: manifest, golden, fixtures and schema say the same as the code."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from oarbank_llmserve.job import (
    DEFAULT_TOKENS,
    MAX_PROMPTS,
    MAX_TOKENS,
    SHORT_NAME,
    SPEC_SCHEMA,
    STAGES,
    Job,
)
from oarbank_llmserve.payload import read_payload
from oarbank_llmserve.result import RESULT_SCHEMA
from tests.llmserve.processes import BUNDLE

MANIFEST = tomllib.loads((BUNDLE / "oarbank-module.toml").read_text())
SOURCE = BUNDLE / "src/oarbank_llmserve"
FOR_PEOPLE = {"cli.py", "dispatch.py", "screen.py"}
OF_A_BACKEND = {"llama_cpp", "mlx", "mlx_lm", "numpy"}  # imported where they are used, on machines that have them


def test_manifest_and_code_use_the_same_names() -> None:
    assert MANIFEST["module"]["id"].rpartition(".")[2] == SHORT_NAME
    assert f"{SHORT_NAME}/spec@1" == SPEC_SCHEMA
    assert f"{SHORT_NAME}/result@{MANIFEST['results']['schema_version']}" == RESULT_SCHEMA
    assert [stage["name"] for stage in MANIFEST["stages"]] == list(STAGES)
    assert [stage["name"] for stage in MANIFEST["stages"] if stage.get("default")] == [STAGES[0]]


def test_module_has_the_version_of_its_package() -> None:
    assert MANIFEST["module"]["version"] == Path("VERSION").read_text(encoding="utf-8").strip()


def test_runner_may_be_given_a_duty_and_files_are_there() -> None:
    runner = MANIFEST["runner"]
    assert {"cooperative_throttle", "progress_events", "cancellable", "cooperative_pause"} <= set(
        runner["capabilities"]
    )
    assert runner["gpu"] == {"use": "shared"}
    assert (BUNDLE / runner["exec"][2].removeprefix("{bundle}/")).is_file()
    assert (BUNDLE / MANIFEST["results"]["schema"]).is_file()
    assert list(BUNDLE.glob(MANIFEST["goldens"]["fixtures"]))


def test_duty_spec_is_a_job_that_lasts() -> None:
    (entry,) = json.loads((BUNDLE / "conformance.json").read_text())["duty_specs"]
    job = read_payload(entry["stage"], entry["payload"])

    assert isinstance(job, Job)
    assert (entry["duty"], entry["window_s"], job.backend, job.prompts[0].max_tokens) == (0.3, 4, "stub", 4000)


def test_golden_is_a_self_test() -> None:
    golden = json.loads((BUNDLE / "goldens/selftest.json").read_text())

    assert isinstance(read_payload("selftest", golden["payload"]), Job)
    assert golden["stage"] is None
    assert golden["expected"]["digest_version"] == MANIFEST["results"]["digest"]["version"]


def imported(path: Path) -> set[str]:
    return imported_by(ast.parse(path.read_text(encoding="utf-8")))


def imported_by(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


RUNNER_HALF = [path for path in [*SOURCE.rglob("*.py"), BUNDLE / "llmserve_runner.py"] if path.name not in FOR_PEOPLE]


@pytest.mark.parametrize("path", RUNNER_HALF, ids=lambda path: path.name)
def test_runner_half_needs_the_standard_library_and_the_sdk_alone(path: Path) -> None:
    ours = {"oarbank_llmserve", "oarbank_sdk"}

    assert imported(path) - set(sys.stdlib_module_names) - ours - OF_A_BACKEND == set()


@pytest.mark.parametrize("path", RUNNER_HALF, ids=lambda path: path.name)
def test_nothing_of_a_backend_is_imported_before_it_is_used(path: Path) -> None:
    if path.parent.name == "engines":
        return
    body = ast.parse(path.read_text(encoding="utf-8")).body
    above = ast.Module([node for node in body if isinstance(node, ast.Import | ast.ImportFrom)], [])

    assert imported_by(above) & OF_A_BACKEND == set()


PURE = [
    *("job.py", "payload.py", "limits.py", "coordinator.py", "text.py", "chunks.py", "result.py"),
    *("sampling.py", "sequence.py", "gguf.py", "appetite.py", "prompts_text.py"),
]
OF_THE_WORLD = {"os", "pathlib", "subprocess", "threading", "time", "socket", "signal", "tempfile", "io", "shutil"}


@pytest.mark.parametrize("name", PURE)
def test_pure_file_knows_no_clock_file_process_or_thread(name: str) -> None:
    assert imported(SOURCE / name) & OF_THE_WORLD == set()


def test_readme_names_only_what_exists() -> None:
    readme = (BUNDLE / "README.md").read_text()
    project = tomllib.loads((BUNDLE / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"oarbank-llmserve\[(\w+)\]", readme)

    assert extras
    assert set(extras) <= set(project["optional-dependencies"])
    assert not {name for name in re.findall(r"`(\w+\.py)`", readme) if not list(BUNDLE.rglob(name))}
    assert f"1 to {MAX_PROMPTS} prompts" in readme
    assert f"1 to {MAX_TOKENS} new tokens" in readme
    assert f"| {DEFAULT_TOKENS} |" in readme
