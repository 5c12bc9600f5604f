"""Whole runs of the kit that no mutant covers: real runners, real time, one property each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.host import this_host
from oarbank_conformkit import conduct as conductor
from oarbank_conformkit.bundle import read
from oarbank_conformkit.checks import Check
from oarbank_conformkit.conduct import conduct
from oarbank_conformkit.report import Report
from tests import needs
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform
from tests.conformkit.test_mutants import excused

SPEC = bundles.DUTY_SPEC


def of(report: Report, rule: str) -> Check:
    (found,) = [one for one in report.checks if one.rule == rule]
    return found


@pytest.mark.realtime
def test_runner_that_is_not_cancellable_is_ended_after_the_measure(conform: Conform) -> None:
    capabilities = [name for name in bundles.CAPABILITIES if name != "cancellable"]

    report = conform(bundles.runner(), capabilities=capabilities, only=["duty", "stop"])

    assert of(report, "duty.stop").status == "skip"
    assert "does not declare cancellable" in of(report, "duty.stop").detail
    assert not [one for one in report.checks if one.rule.startswith("stop.")]
    others = {one.rule for one in report.checks if one.status not in ("pass", "skip")}
    assert others <= excused(report), report.checks


@pytest.mark.realtime
def test_duty_0_is_held_by_waiting(conform: Conform) -> None:
    report = conform(bundles.runner(), duty_specs=[SPEC | {"duty": 0}], only=["duty"])

    assert of(report, "duty.reports").status == "pass"
    assert "0.000" in of(report, "duty.reports").detail
    assert of(report, "duty.measured_share").status == "pass"
    assert of(report, "duty.stop").status == "pass"
    assert report.exit == 0


@pytest.mark.realtime
def test_reports_of_a_gpu_that_nobody_can_read_leave_the_verdict_open(conform: Conform) -> None:
    report = conform(bundles.runner('    device = "gpu"\n'), only=["duty"])

    assert of(report, "duty.measured_share").status == "unknown"
    assert "reports say gpu" in of(report, "duty.measured_share").detail
    assert of(report, "duty.reported_share").status == "pass"
    assert (report.ok, report.exit) == (None, 3)


def test_fixture_failures_start_no_run_and_stop_nothing_else(conform: Conform) -> None:
    bad: list[dict[str, Any]] = [
        SPEC | {"duty": 1.2},
        SPEC | {"name": "b", "duty": True},
        SPEC | {"name": "c", "windows": 1},
        SPEC | {"name": "d", "window_s": 0},
        SPEC | {"name": "e", "stage": "other"},
    ]

    report = conform(bundles.runner(), duty_specs=bad, only=["fixture", "golden.digest"])

    failed = sorted(one.name for one in report.checks if one.status == "fail")
    assert failed == [f"duty spec #{i}: fixture" for i in range(5)]
    assert not report.duty_runs
    assert of(report, "golden.digest").status == "pass"


def test_runner_that_cannot_be_started_is_named_and_not_the_kit(conform: Conform, tmp_path: Path) -> None:
    bundles.build(tmp_path / "other", bundles.runner())
    folder = tmp_path / "other"
    manifest = folder / "oarbank-module.toml"
    manifest.write_text(manifest.read_text().replace('["python", "-I", "{bundle}/runner.py"]', '["{bundle}/nothing"]'))

    report = conduct(read(str(folder)), this_host(), kit="test")

    assert outcomes(report)[:4] == [
        ("doctor.exit", "fail"),
        ("doctor.document", "unknown"),
        ("golden.exit", "fail"),
        ("golden.result", "unknown"),
    ]
    assert set(outcomes(report)[4:]) == NOT_RUN
    assert "could not be started: No such file or directory" in of(report, "doctor.exit").detail
    assert "could not be started" in of(report, "duty.runs").detail
    assert report.exit == 1


NOT_RUN = {
    ("golden.repeat", "unknown"),
    ("retry.result", "unknown"),
    ("stop.sigterm", "unknown"),
    ("stop.acknowledged", "unknown"),
    ("pause.held", "unknown"),
    ("throttle.threads", "unknown"),
    ("duty.runs", "unknown"),
}
"""What is left of the plan for a runner that never comes to work: a line for each step."""


def outcomes(report: Report) -> list[tuple[str, str]]:
    """What the runner's own checks came to, in their order."""
    return [(one.rule, one.status) for one in report.checks if one.suite == "runner"]


def test_runner_with_a_syntax_error_shows_it_once_and_is_told_in_few_lines(conform: Conform) -> None:
    report = conform("x = 1\ndef (:\n")

    assert outcomes(report)[:4] == [
        ("doctor.exit", "fail"),
        ("doctor.document", "unknown"),
        ("golden.exit", "fail"),
        ("golden.result", "unknown"),
    ]
    assert set(outcomes(report)[4:]) == NOT_RUN
    details = "\n".join(one.detail for one in report.checks)
    assert details.count("SyntaxError") == 1
    assert 'runner.py", line 2' in details
    assert "phase" not in details


def test_runner_that_crashes_at_import_in_run_alone_keeps_its_doctor(conform: Conform) -> None:
    report = conform(bundles.runner(prelude="if 'run' in sys.argv: import nothing_of_that_name"))

    runs = [one for one in outcomes(report) if not one[0].startswith("doctor.")]
    assert runs[:2] == [("golden.exit", "fail"), ("golden.result", "unknown")]
    assert set(runs[2:]) == NOT_RUN
    assert "No module named 'nothing_of_that_name'" in of(report, "golden.exit").detail


DOCUMENTS = """
    def doctor(self) -> int:
        kept = {name: os.environ.get(name) for name in ("OARBANK_WORKDIR", "TMPDIR", "OARBANK_MODULE_DATA", "HOME")}
        kept["cwd"] = os.getcwd()
        kept["inside"] = all(os.path.isdir(kept[name]) for name in ("TMPDIR", "cwd"))
        kept["granted"] = [os.path.exists(os.environ[f"OARBANK_{n}_FILE"]) for n in ("SETTINGS", "TOOLS", "FOLDERS")]
        found = self.diagnosis()
        found["health"], found["checks"] = "unhealthy", [{"name": "seen", "ok": False, "detail": json.dumps(kept)}]
        print("chatter of a library")
        print(json.dumps(found))
        return 0
"""


def test_doctor_works_in_the_data_directory_without_a_workdir(conform: Conform) -> None:
    report = conform(bundles.runner(DOCUMENTS), duty_specs=None, only=["doctor"])

    seen = json.loads(of(report, "doctor.health").detail.removeprefix("unhealthy: seen: "))
    assert seen["OARBANK_WORKDIR"] is None
    assert seen["cwd"] == seen["OARBANK_MODULE_DATA"] == seen["HOME"]
    assert seen["TMPDIR"].startswith(seen["cwd"])
    assert seen["inside"]
    assert seen["granted"] == [True, True, True]
    assert not os.path.exists(seen["cwd"])


LAID_OUT = """
    def texts(self) -> list:
        kept = sorted(os.listdir(self.args.workdir))
        with open("control.json") as file: kept.append(file.read().strip())
        kept.append(str(self.args.events))
        kept.append(os.environ["LANG"])
        print(json.dumps(kept), file=sys.stderr)
        sys.exit(4)
"""


def test_run_finds_its_workdir_laid_out(conform: Conform) -> None:
    capabilities = [name for name in bundles.CAPABILITIES if name != "progress_events"]

    report = conform(bundles.runner(LAID_OUT), duty_specs=None, capabilities=capabilities, only=["golden.exit"])

    detail = of(report, "golden.exit").detail
    kept = json.loads(detail.partition("last line of stderr: ")[2])
    assert {".grants", "spec.json", "control.json", "tmp"} <= set(kept)
    assert '{"seq": 0}' in kept
    assert kept[-2:] == ["None", "C"]  # without progress_events there is no --events


MOUNTED = """
    def texts(self) -> list:
        with open(os.path.join(self.args.workdir, "in", "scene", "a.txt")) as file:
            return [file.read()]
"""


def with_dataset(folder: Path, directory: str) -> Report:
    """Judge a module whose golden mounts a dataset."""
    bundles.build(folder, bundles.runner(MOUNTED), duty_specs=None)
    golden = bundles.golden(bundles.GOLDEN) | {"datasets": ["scene:a"], "mounts": {"scene:a": "in/scene"}}
    (folder / "goldens" / "selftest.json").write_text(json.dumps(golden))
    (folder / "data").mkdir()
    (folder / "data" / "a.txt").write_text(f"{bundles.GOLDEN['units']} units")
    fixtures = {"datasets": {"scene:a": {"kind": "scene", "dir": directory}}}
    (folder / "conformance.json").write_text(json.dumps(fixtures))
    return conduct(read(str(folder)), this_host(), kit="test", only=["golden"])


@needs.posix()
def test_dataset_of_the_fixtures_is_mounted(tmp_path: Path) -> None:
    assert of(with_dataset(tmp_path / "module", "data"), "golden.digest").status == "pass"


@needs.posix()
def test_dataset_that_is_not_there_is_the_fixtures_fault(tmp_path: Path) -> None:
    report = with_dataset(tmp_path / "module", "nowhere")

    assert of(report, "fixture.entry").status == "fail"
    assert "conformance.json: /datasets/scene:a/dir: must be a folder" in of(report, "fixture.entry").detail
    [repeat] = [one for one in report.checks if one.rule.startswith("golden.")]
    assert (repeat.rule, repeat.status) == ("golden.repeat", "unknown")


def test_payload_without_a_canonical_form_is_the_fixtures_fault(conform: Conform) -> None:
    report = conform(bundles.runner(), duty_specs=[SPEC | {"payload": {"n": 2**60}}], only=["duty"])

    assert of(report, "fixture.entry").name == "duty spec #0: fixture"
    assert "2^53" in of(report, "fixture.entry").detail


class BrokenSuite:
    """A suite of the kit that fails in the middle of its work."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault

    def run(self, *_: object) -> Any:
        raise self.fault


FAULTS = [
    (HostFault("conform: a temporary directory must be made; No space left. Free some space."), "No space left"),
    (ZeroDivisionError("nobody foresaw this"), "the kit itself failed: ZeroDivisionError: nobody foresaw this"),
]


@pytest.mark.parametrize(("fault", "sentence"), FAULTS, ids=["foreseen", "unforeseen"])
def test_fault_of_the_kit_is_never_the_runners(
    fault: Exception, sentence: str, conform: Conform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conductor, "doctor", BrokenSuite(fault))

    report = conform(bundles.runner(), only=["doctor", "golden.digest"])

    assert "fail" not in {one.status for one in report.checks}
    unjudged = [one for one in report.checks if one.status == "unknown"]
    assert [one.rule for one in unjudged] == ["doctor.exit"]
    assert of(report, "golden.digest").status == "pass"
    assert all(sentence in one.detail and "no fault of the runner" in one.detail for one in unjudged)
    assert (report.ok, report.exit) == (None, 3)
