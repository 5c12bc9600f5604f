"""The command as a person runs it: what it prints, where, and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from oarbank_sdk.cli import main
from oarbank_sdk.contracts.judge import judge
from tests import needs
from tests.conformkit import bundles

LONG_S = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bundles.build(tmp_path / "module", bundles.runner(), duty_specs=None)


def command(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "oarbank_sdk.cli", "conform", *map(str, args)]


def conform(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*args), capture_output=True, text=True, timeout=LONG_S, check=False)


@needs.posix()
def test_report_for_people_ends_in_a_summary(folder: Path) -> None:
    done = conform(folder, "--only", "doctor", "--only", "golden.digest")

    assert done.returncode == 0
    assert done.stderr == ""
    assert "pass runner    golden selftest: digest is the expected one\n" in done.stdout
    assert " 0 failed, 0 unknown," in done.stdout.splitlines()[-1]


@needs.posix()
def test_json_is_one_object_and_nothing_else(folder: Path) -> None:
    done = conform(folder, "--json", "--only", "golden")

    assert done.returncode == 0
    assert done.stderr == ""
    assert judge("conformance-report-1", done.stdout).faults == []
    assert json.loads(done.stdout)["module"] == {"id": "org.example.standin", "version": "1.2.3", "dir": str(folder)}


def test_failure_is_exit_1(folder: Path) -> None:
    (folder / "goldens" / "selftest.json").write_text("{}")

    done = conform(folder, "--no-runner")

    assert done.returncode == 1
    assert "FAIL manifest  goldens/selftest.json is a golden" in done.stdout


def test_no_runner_starts_nothing(folder: Path) -> None:
    (folder / "runner.py").write_text("raise SystemExit(9)")

    done = conform(folder, "--no-runner")

    assert done.returncode == 0
    assert "skip runner    golden selftest: is run" in done.stdout
    assert done.stdout.endswith(": the files keep their contracts; the runner was not judged\n")


@needs.posix()
def test_unknown_is_exit_3_and_strict_makes_it_1(folder: Path) -> None:
    golden = bundles.golden(bundles.GOLDEN) | {"platforms": ["plan9-mips"]}
    (folder / "goldens" / "selftest.json").write_text(json.dumps(golden))

    done, strict = conform(folder, "--only", "golden"), conform(folder, "--strict", "--only", "golden")

    assert (done.returncode, strict.returncode) == (3, 1)
    assert "could not tell whether" in done.stdout
    assert " 1 failed, 0 unknown," in strict.stdout


def test_fixtures_from_elsewhere_are_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"duty_specs": [{"name": "a"}]}')

    done = conform(folder, "--no-runner", "--fixtures", tmp_path / "other.json")

    assert done.returncode == 1
    assert "FAIL manifest  duty spec #0: fixture" in done.stdout


WRONG = [
    (["nowhere"], "nowhere: must be a module's directory; found nothing there."),
    (["{folder}", "--fixtures", "nowhere.json"], "nowhere.json: must be readable;"),
    (["{folder}", "--what"], "--what"),
    (["{empty}"], "must hold oarbank-module.toml; found no such file."),
    (["{broken}"], "oarbank-module.toml: line 1: must be TOML; found 'manifest ='."),
]


@pytest.mark.parametrize(("args", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_wrong_use_is_exit_2_and_one_line(
    args: list[str],
    sentence: str,
    flags: list[str],
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("empty", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "broken" / "oarbank-module.toml").write_text("manifest = \n")
    places = {"folder": folder, "empty": tmp_path / "empty", "broken": tmp_path / "broken"}

    code = called("conform", *(arg.format(**places) for arg in args), *flags)

    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert sentence in err
    if "--what" not in args:
        assert len(err.splitlines()) == 1


def called(*args: str) -> int:
    """The exit code of the command, in this process."""
    try:
        return main(list(args))
    except SystemExit as exc:  # argparse's way out
        return int(exc.code or 0)


@needs.posix()
def test_interrupt_leaves_no_process_and_says_so(tmp_path: Path) -> None:
    marker = tmp_path / "pids"
    body = (
        "    def work(self, payload):\n"
        f"        open({str(marker)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "        time.sleep(120)\n"
    )
    folder = bundles.build(tmp_path / "module", bundles.runner(body), duty_specs=None)
    kit = subprocess.Popen(
        command(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        give_up = time.monotonic() + LONG_S
        while not (marker.exists() and marker.read_text().endswith("\n")):
            assert time.monotonic() < give_up
            time.sleep(0.01)
        os.killpg(kit.pid, signal.SIGINT)  # as Ctrl-C does: to everybody in the terminal's foreground group
        _, told = kit.communicate(timeout=LONG_S)
    finally:
        kit.kill()
        kit.wait()

    assert kit.returncode == 130
    assert "interrupted; nothing was concluded" in told
    assert "Traceback" not in told
    assert not any(psutil.pid_exists(int(pid)) for pid in marker.read_text().split())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux: a device that is always full")
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_report_that_cannot_be_written_is_exit_3_and_one_line(flags: list[str], folder: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            command(folder, "--no-runner", *flags),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LONG_S,
            check=False,
        )

    assert done.returncode == 3
    assert done.stderr == ("conform: the report must be written; No space left on device. Send the output elsewhere.\n")


def test_asking_for_the_command_loads_nothing_that_takes_long() -> None:
    code = "import sys, oarbank_conformkit.cli; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LONG_S, check=True)

    assert not {"jsonschema", "psutil", "pydantic", "rich"} & set(done.stdout.split())


def test_help_names_the_exit_codes() -> None:
    done = conform("--help")

    assert done.returncode == 0
    assert "3 something that must hold could not be told" in " ".join(done.stdout.split())


@pytest.mark.parametrize("how", ["here", "variable"])
def test_without_a_directory_the_variable_s_module_is_judged_else_the_one_here(tmp_path, how):
    folder = bundles.build(tmp_path / "module", bundles.runner("pass"), duty_specs=None)
    env = {name: value for name, value in os.environ.items() if name != "OARBANK_CONFORM_DIR"}
    if how == "variable":
        env["OARBANK_CONFORM_DIR"] = str(folder)
    done = subprocess.run(
        [*command(folder)[:-1], "--no-runner"],
        cwd=folder if how == "here" else tmp_path, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "the runner was not judged" in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
