"""What a caller may choose: rules by pattern, the list of them, limits, and a data directory that holds something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_conformkit import data_folder
from oarbank_conformkit.limits import Limits
from oarbank_conformkit.rules import catalogue, chosen
from oarbank_conformkit.workdir import Scratch
from oarbank_sdk.cli import main
from tests import needs
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform


def called(*args: object) -> int:
    """The exit code of the command, in this process."""
    try:
        return main(["conform", *map(str, args)])
    except SystemExit as exc:  # argparse's way out
        return int(exc.code or 0)


PATTERNS = [
    ([], set(catalogue())),
    (["stop"], {"stop.acknowledged", "stop.exit", "stop.result_true", "stop.sigterm"}),
    (["*.exit"], {"doctor.exit", "golden.exit", "stop.exit", "spec.exit"}),
    (["retry.result", "writes"], {"retry.result", "writes.inside"}),
]


@pytest.mark.parametrize(("patterns", "ids"), PATTERNS, ids=[" ".join(row[0]) or "none" for row in PATTERNS])
def test_pattern_is_of_ids_or_suites(patterns: list[str], ids: set[str]) -> None:
    assert chosen(patterns) == ids


@pytest.mark.parametrize("flags", [[], ["--json"], ["--list"], ["--list", "--json"]])
def test_pattern_that_matches_nothing_is_wrong_use(flags: list[str], tmp_path: Path, capsys) -> None:
    folder = bundles.build(tmp_path / "module", "")

    code = called(folder, "--only", "stop", "--only", "stopp", *flags)

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == "--only stopp: must match a rule or a suite; see --list. Found none.\n"


def test_choice_that_this_module_has_nothing_of_is_wrong_use(tmp_path: Path, capsys) -> None:
    folder = bundles.build(tmp_path / "module", "", duty_specs=None)

    assert called(folder, "--only", "spec", "--no-runner") == 2
    assert "--only spec: must select something of this module; found nothing." in capsys.readouterr().err


def test_list_names_every_rule_for_people(capsys) -> None:
    assert called("--list") == 0

    out = capsys.readouterr().out
    assert all(rule.id in out and rule.says in out and rule.source in out for rule in catalogue().values())


def test_list_for_programs_is_one_array_of_what_was_chosen(capsys) -> None:
    assert called("--list", "--json", "--only", "pause") == 0

    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == ["pause.held", "pause.kept", "pause.result"]
    assert {one["suite"] for one in listed} == {"pause"}
    assert set(listed[0]) == {"id", "suite", "level", "says", "source"}


@needs.posix()
def test_failure_that_keeps_the_chosen_rules_from_being_judged_is_told(conform: Conform) -> None:
    report = conform(bundles.runner(), duty_specs=[{"name": "a"}], only=["doctor"])

    assert [one.rule for one in report.checks if one.status == "fail"] == ["fixture.entry"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "1e9"])
def test_limit_that_is_no_time_is_wrong_use(seconds: str, tmp_path: Path, capsys) -> None:
    assert called(tmp_path, f"--settle-limit={seconds}") == 2
    assert "must be seconds, above 0" in capsys.readouterr().err


@needs.posix()
def test_doctor_has_the_time_that_it_is_given(conform: Conform) -> None:
    slow = "    def doctor(self):\n        time.sleep(30)\n"

    report = conform(bundles.runner(slow), only=["doctor.exit"], limits=Limits(doctor_s=0.5))

    assert [(one.status, one.rule) for one in report.checks] == [("fail", "doctor.exit")]
    assert "still running after 0.5 s" in report.checks[0].detail


# ---- a data directory that holds something ----------------------------------------------------------------


def test_fresh_data_directory_holds_what_the_caller_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "COPIED_AT_MOST", 10)
    (tmp_path / "models" / "small").mkdir(parents=True)
    (tmp_path / "models" / "small" / "config.json").write_text("{}")
    big = tmp_path / "models" / "big.gguf"
    big.write_text("a model of many bytes")

    with Scratch(tmp_path) as scratch:
        copied, linked = scratch.data / "models" / "small" / "config.json", scratch.data / "models" / "big.gguf"
        assert copied.read_text() == "{}"
        assert not copied.samefile(tmp_path / "models" / "small" / "config.json")
        assert linked.samefile(big)
        assert (scratch.data / "tmp").is_dir()

    assert big.read_text() == "a model of many bytes"


@needs.posix()
def test_every_run_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "words").write_text("found")
    body = (
        "    def texts(self):\n"
        "        data = os.environ['OARBANK_MODULE_DATA']\n"
        "        with open(os.path.join(data, 'words')) as file:\n"
        "            return super().texts() if file.read() == 'found' else []\n"
    )
    folder = bundles.build(tmp_path / "module", bundles.runner(body), duty_specs=None)

    assert called(folder, "--data", given, "--only", "golden.digest", "--only", "retry") == 0


WRONG_DATA = [("nowhere", "found nothing there"), ("module/runner.py", "found a file")]


@pytest.mark.parametrize(("given", "words"), WRONG_DATA, ids=[row[0] for row in WRONG_DATA])
def test_data_that_is_no_folder_is_wrong_use(given: str, words: str, tmp_path: Path, capsys) -> None:
    folder = bundles.build(tmp_path / "module", "")

    assert called(folder, "--data", tmp_path / given) == 2
    assert words in capsys.readouterr().err


def test_data_that_cannot_be_copied_is_this_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(HostFault, match="must be copied for a run"), Scratch(tmp_path):
        pass


def test_folder_is_taken_as_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert data_folder.checked(".") == tmp_path.resolve()
    with pytest.raises(UsageError, match="must be a folder"):
        data_folder.checked("nowhere")
