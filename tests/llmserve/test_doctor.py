"""The doctor: honest about backends, quick when one hangs, silent on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from oarbank_llmserve.doctor import Check, _start, check_backends, platform_token, report
from tests import needs
from tests.llmserve.processes import BUNDLE, environment


def doctor(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The doctor as an agent starts it; `path` holds packages that come first."""
    argv = [sys.executable, "-I", str(BUNDLE / "llmserve_runner.py"), "doctor", *arguments]
    if path is not None:
        code = f"import sys, runpy; sys.path.insert(0, {str(path)!r}); sys.argv = {argv[2:]!r}; "
        code += f"runpy.run_path({argv[2]!r}, run_name='__main__')"
        argv = [sys.executable, "-I", "-c", code]
    env = environment(folder, folder)
    del env["OARBANK_WORKDIR"]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=60)


def test_last_line_is_the_document_and_nothing_is_written(tmp_path: Path) -> None:
    ran = doctor(tmp_path, "--json")
    answer = json.loads(ran.stdout.splitlines()[-1])

    assert answer["runner_protocol"]["supported"] == [1]
    assert answer["health"] == "healthy"
    assert answer["attrs"]["backends"][-1] == "stub"
    assert [check["name"] for check in answer["checks"]] == ["backend mlx", "backend llamacpp", "backend stub"]
    assert [check["name"].split()[1] for check in answer["checks"] if check["ok"]] == answer["attrs"]["backends"]
    assert not list(tmp_path.iterdir())


def test_backend_that_does_not_import_is_a_failed_check_whatever_is_installed(tmp_path: Path) -> None:
    packages, folder = tmp_path / "packages", tmp_path / "data"
    packages.mkdir()
    folder.mkdir()
    (packages / "mlx.py").write_text("raise ImportError('libmlx.so: cannot open')")
    answer = json.loads(doctor(folder, "--json", path=packages).stdout.splitlines()[-1])

    assert (answer["checks"][0]["name"], answer["checks"][0]["ok"]) == ("backend mlx", False)
    assert answer["checks"][0]["detail"] == "libmlx.so: cannot open"
    assert "mlx" not in answer["attrs"]["backends"]


def test_person_gets_a_table(tmp_path: Path) -> None:
    assert [line.split()[1:3] for line in doctor(tmp_path).stdout.splitlines()] == [
        ["backend", "mlx"],
        ["backend", "llamacpp"],
        ["backend", "stub"],
    ]


BROKEN: list[tuple[str, str, str]] = [
    # behaviour                        the package's code                                         detail
    ("it is missing", "import nobody_has_this", 'pip install "oarbank-llmserve[llamacpp]"'),
    ("it raises", "raise OSError('libgomp.so.1: cannot open\\nlast line')", "last line"),
    ("it exits", "import sys; sys.exit('gone')", "gone"),
    (
        "it kills the process",
        "import os, sys; print('dying', file=sys.stderr); os._exit(3)",
        "ended the process (3): dying",
    ),
    ("it prints", "print('{\"noise\": 1}'); raise ImportError('loud')", "loud"),
]


@pytest.mark.parametrize(("code", "detail"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_backend_that_breaks_on_import_breaks_nothing_else(tmp_path: Path, code: str, detail: str) -> None:
    packages, folder = tmp_path / "packages", tmp_path / "data"
    packages.mkdir()
    folder.mkdir()
    (packages / "llama_cpp.py").write_text(code)
    answer = json.loads(doctor(folder, "--json", path=packages).stdout.splitlines()[-1])

    assert answer["health"] == "healthy"
    assert answer["attrs"]["backends"] == ["stub"]
    assert detail in answer["checks"][1]["detail"]
    assert not list(folder.iterdir())


@pytest.mark.realtime
def test_import_that_hangs_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "llama_cpp.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    began_s = time.monotonic()
    checks = check_backends(limit_s=2.0)

    assert time.monotonic() - began_s < 30
    assert checks[1] == Check("backend llamacpp", False, "its import did not end in time")
    assert checks[2].ok


PLATFORMS = [
    ("Linux", "x86_64", "linux-amd64"),
    ("Linux", "aarch64", "linux-arm64"),
    ("Darwin", "arm64", "darwin-arm64"),
    ("Windows", "AMD64", "windows-amd64"),
    ("FreeBSD", "riscv64", "freebsd-riscv64"),
    ("Linux", "", "linux-unknown"),
]


@pytest.mark.parametrize(("system", "machine", "token"), PLATFORMS)
def test_platform_token(system: str, machine: str, token: str) -> None:
    assert platform_token(system, machine) == token


def test_module_is_unhealthy_where_the_stand_in_does_not_work() -> None:
    answer = report([Check("backend llamacpp", True), Check("backend stub", False, "said (1, 2)")])

    assert (answer["health"], answer["attrs"]["backends"]) == ("unhealthy", ["llamacpp"])


def test_document_agrees_with_the_schema() -> None:
    import jsonschema

    path = Path("schemas/runner-doctor-1.schema.json")
    schema: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(report(check_backends(("stub",))), schema)


@needs.posix("process groups")
def test_children_end_with_whoever_ends_the_doctor() -> None:
    """They stay in its process group, which is what an agent kills."""
    child = _start("mlx")
    try:
        assert os.getpgid(child.pid) == os.getpgrp()
    finally:
        child.communicate()
