"""`oarbank-llmserve module DIR`: a folder that runs with nothing beside it, from a checkout as from a wheel."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from oarbank_llmserve import module_dir
from oarbank_llmserve.cli import main
from oarbank_llmserve.module_dir import FILES, LEFT_BEHIND, write_module
from oarbank_sdk.contracts.judge import judge_value
from tests.llmserve.processes import BUNDLE, Run, spec

PACKAGES = {"oarbank_llmserve": BUNDLE / "src/oarbank_llmserve", "oarbank_sdk": Path("packages/sdk/src/oarbank_sdk")}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("m") / "a module"
    write_module(folder)
    return folder


def test_folder_holds_what_a_node_runs_and_nothing_else(module: Path) -> None:
    names = {path.relative_to(module).as_posix() for path in module.rglob("*") if path.is_file()}

    assert set(FILES) <= names
    assert {name.partition("/")[0] for name in names - set(FILES)} == set(PACKAGES)
    assert {Path(name).suffix for name in names - set(FILES)} == {".py", ".typed"}
    assert not [name for name in names if "test" in Path(name).stem and name != "goldens/selftest.json"]


def test_what_is_left_behind_exists_and_what_is_not_needs_the_standard_library(module: Path) -> None:
    for package, names in LEFT_BEHIND.items():
        absent = {name for name in names if not (PACKAGES[package] / name).exists()}
        assert absent <= {"bundle"}  # in a wheel alone
    code = "import sys, pkgutil, importlib\nsys.path[:0] = [sys.argv[1]]\n" + "".join(
        f"import {package}\nfor one in pkgutil.walk_packages({package}.__path__, '{package}.'):\n"
        "    if '.engines.' not in one.name or one.name.endswith('.stub'): importlib.import_module(one.name)\n"
        for package in PACKAGES
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, str(module)], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_runner_and_coordinator_work_with_nothing_else_on_the_path(module: Path, tmp_path: Path) -> None:
    before = sorted(path for path in module.rglob("*"))
    with Run(tmp_path / "w", spec({"prompts": ["a"], "max_tokens": 2}), runner=module / "llmserve_runner.py") as run:
        assert run.wait_for_exit() == 0
    hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_versions":[1]}}'
    ran = subprocess.run([sys.executable, "-I", "-S", str(module / "llmserve_module.py")], input=hello,
                         capture_output=True, text=True, check=False, timeout=60)  # fmt: skip

    assert json.loads(ran.stdout)["result"]["module"]["id"] == "dev.oarbank.llmserve"
    assert (ran.returncode, ran.stderr) == (0, "")
    assert sorted(path for path in module.rglob("*")) == before  # nothing was compiled into it


def test_wheel_carries_every_file_of_the_module() -> None:
    build = tomllib.loads((BUNDLE / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    forced = build["force-include"]

    for name in FILES:
        within = [place for place in forced if name == place or name.startswith(f"{place}/")]
        assert within, name
        assert forced[within[0]] == f"oarbank_llmserve/bundle/{within[0]}"


def test_installed_package_writes_the_same_folder(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a wheel is laid out: the module's files in the package, nothing around it."""
    installed = tmp_path / "site/oarbank_llmserve"
    shutil.copytree(PACKAGES["oarbank_llmserve"], installed, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        (installed / "bundle" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUNDLE / name, installed / "bundle" / name)
    monkeypatch.setattr(module_dir.oarbank_llmserve, "__file__", str(installed / "__init__.py"))
    write_module(tmp_path / "m")

    def content(folder: Path) -> dict[str, bytes]:
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert content(tmp_path / "m") == content(module)


def test_locked_environment_is_the_runners_alone(tmp_path: Path) -> None:
    uv = tmp_path / "uv"
    uv.mkdir()
    for name in ("pyproject.toml", "uv.lock"):
        (uv / name).write_text(f"# {name}\n")
    write_module(tmp_path / "m", uv, "3.12.4")
    manifest = tomllib.loads((tmp_path / "m/oarbank-module.toml").read_text())

    assert manifest["runner"]["runtime"] == {"kind": "uv", "lock": "uv.lock", "python": "3.12.4"}
    assert manifest["coordinator"]["runtime"] == {"kind": "python"}
    assert (tmp_path / "m/uv.lock").read_text() == "# uv.lock\n"
    assert judge_value("module-manifest-1", manifest) == []


WRONG = [
    # behaviour                arguments                                says
    ("a folder with files", ("full",), "full: must be a new or an empty folder; found something in it. Name another"),
    ("a file", ("full/x",), "full/x: must be a new or an empty folder"),
    ("no project", ("new", "--uv", "absent"), "--uv: must hold pyproject.toml and uv.lock; found no pyproject.toml"),
    ("no lock", ("new", "--uv", "unlocked"), "found no uv.lock in unlocked. Run `uv lock` in it"),
    ("no version", ("new", "--python", "latest"), "--python: must be a version of Python such as 3.12.x; found latest"),
]


@pytest.mark.parametrize(("arguments", "says"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_wrong_use_is_one_line_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...],
    says: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for folder in ("full", "unlocked"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full/x").write_text("")
    (tmp_path / "unlocked/pyproject.toml").write_text("")

    assert main(["module", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line
    assert not (tmp_path / "new").exists()


def test_empty_folder_is_taken_and_the_next_step_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").mkdir()

    assert main(["module", str(tmp_path / "m")]) == 0
    assert capsys.readouterr().out.endswith(f"Prove it: oarbank-sdk conform {tmp_path / 'm'}\n")


@pytest.mark.parametrize("broken", ["oarbank-module.toml", "goldens/selftest.json"])
def test_coordinator_of_a_folder_that_is_not_whole_says_so_in_one_line(tmp_path: Path, broken: str) -> None:
    write_module(tmp_path / "m")
    (tmp_path / "m" / broken).write_text("{")
    ran = subprocess.run([sys.executable, "-I", str(tmp_path / "m/llmserve_module.py")], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=False, timeout=60)  # fmt: skip

    assert (ran.returncode, ran.stdout) == (3, "")
    (line,) = ran.stderr.splitlines()
    assert "must be a module's folder that can be read" in line
