"""`oarbank-sdk` from outside: validate, schema, new, and what a missing package is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import oarbank_sdk
from oarbank_sdk import cli, dispatch
from oarbank_sdk.contracts import catalogue
from tests import needs

INTEROP = Path(__file__).parents[1] / "contracts" / "interop"
PAGE = Path(__file__).parents[2] / "docs" / "write-a-runner.md"
BY_HAND = "mkdir -p ../my-work"
KINDS = {"control": "runner-control-1", "failure": "runner-failure-1", "conformance": "conformance-1"}


def run(capsys, *argv: str) -> tuple[int, str, str]:
    try:
        code = cli.main(list(argv))
    except SystemExit as stop:
        code = int(stop.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def rows() -> list[dict]:
    documents = json.loads((INTEROP / "INDEX.json").read_text())["documents"]
    return [row for row in documents if row["kind"] in KINDS and "dup-keys" not in row["file"]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_validate_says_what_the_interop_set_says(capsys, row):
    code, out, _ = run(capsys, "validate", KINDS[row["kind"]], str(INTEROP / row["file"]), "--json")
    said = json.loads(out)
    assert code == (0 if row["verdict"] == "valid" else 1)
    assert said["valid"] is (row["verdict"] == "valid")
    if not said["valid"]:
        assert said["layer"] == row["layer"]
        assert said["faults"]


def test_validate_names_pointer_keyword_and_what_was_found(capsys, tmp_path):
    document = tmp_path / "control.json"
    document.write_text('{"seq": 1, "gpu_duty": 1.5}')
    code, out, _ = run(capsys, "validate", "runner-control-1", str(document))
    assert (code, out) == (1, f"{document}: /gpu_duty: must be from 0 to 1; found 1.5 (maximum)\n")


def test_validate_reads_a_manifest_as_toml(capsys):
    manifest = Path(__file__).parents[2] / "packages" / "llmserve" / "oarbank-module.toml"
    assert run(capsys, "validate", "module-manifest-1", str(manifest))[0] == 0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["validate", "runner-control-9", "x"], "must be one of"),
        (["validate", "runner-control-1", "/nope"], "must be a file that can be read"),
        (["validate", "runner-control-1", "/"], "must be a file that can be read"),
        (["validate", "runner-control-1"], "FILE"),
        (["schema", "nope"], "must be one of"),
        (["new", "walker", "x"], "invalid choice"),
        (["nope"], "invalid choice"),
        ([], "COMMAND"),
    ],
)
def test_wrong_use_is_said_in_a_line_and_exits_2(capsys, argv, says):
    code, _, err = run(capsys, *argv)
    assert code == 2
    assert says in err
    assert "Traceback" not in err


def test_schema_prints_what_lies_in_the_package(capsys):
    code, out, _ = run(capsys, "schema", "runner-control-1")
    assert code == 0
    assert json.loads(out) == catalogue.schema("runner-control-1")
    assert len(run(capsys, "schema")[1].splitlines()) == len(catalogue.kinds())


def test_a_command_of_a_package_that_is_not_installed_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setattr(dispatch, "entry_points", lambda **_: [])
    code, _, err = run(capsys, "conform", "x")
    assert code == 2
    assert "pip install oarbank-conformkit" in err


def test_new_writes_over_nothing(capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = run(capsys, "new", "runner", str(tmp_path))
    assert code == 2
    assert "must be new or an empty folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["Upper", "1st", "a_b", "", "-x"])
def test_new_refuses_a_name_that_no_module_may_have(capsys, tmp_path, name):
    code, _, err = run(capsys, "new", "runner", str(tmp_path / "x"), f"--name={name}")
    if name == "":  # no name is the folder's
        assert code == 0
        return
    assert code == 2
    assert "--name: must be" in err


@pytest.fixture
def runner(capsys, tmp_path) -> Path:
    folder = tmp_path / "My Runner 2"
    assert run(capsys, "new", "runner", str(folder))[0] == 0
    return folder


def test_a_new_runner_carries_our_files_unchanged(runner):
    for name in ("control.py", "duty.py"):
        ours = (Path(oarbank_sdk.__file__).parent / name).read_text()
        assert (runner / "vendor" / "oarbank_sdk" / name).read_text() == ours
    assert "{{" not in "".join(path.read_text() for path in runner.rglob("*") if path.is_file())
    assert 'id = "org.example.my-runner-2"' in (runner / "oarbank-module.toml").read_text()


def conform(folder: Path, *options: str) -> tuple[int, dict]:
    done = subprocess.run(
        [sys.executable, "-m", "oarbank_sdk.cli", "conform", str(folder), "--json", *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


@needs.posix()
def test_a_new_runner_runs_by_hand_as_its_page_says(tmp_path):
    page = PAGE.read_text(encoding="utf-8")
    command = page[page.index(BY_HAND) : page.index("```", page.index(BY_HAND))]
    assert cli.main(["new", "runner", str(tmp_path / "my-runner")]) == 0
    (tmp_path / "checkout").mkdir()

    ran = subprocess.run(["sh", "-eu", "-c", command], cwd=tmp_path / "checkout", capture_output=True, check=False)

    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "my-work" / "result.json").read_text(encoding="utf-8"))["payload"]


@pytest.mark.realtime
def test_a_new_runner_conforms_as_written(runner):
    code, report = conform(runner)
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert failed == []
    assert code in (0, 3), report["checks"]  # 3: the machine was too busy to tell


@pytest.mark.realtime
@needs.posix()
def test_a_new_runner_without_its_unit_fails_the_duty_rules_and_no_other(runner):
    code = (runner / "runner.py").read_text()
    assert code.count("with duty.unit():") == 1
    (runner / "runner.py").write_text(code.replace("with duty.unit():", "if True:"))
    status, report = conform(runner)
    failed = {check["rule"] for check in report["checks"] if check["status"] == "fail"}
    assert status == 1
    assert failed
    assert all(rule.startswith("duty.") for rule in failed), failed
