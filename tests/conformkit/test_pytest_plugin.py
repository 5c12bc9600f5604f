"""The plugin as a person uses it: pytest in a process of its own, beside tests that are there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from oarbank_agent_check.jobs.host import this_host
from oarbank_conformkit.checks import check
from oarbank_conformkit.pytest_plugin import Refused, told
from oarbank_conformkit.rules import catalogue
from tests import needs
from tests.conformkit import bundles
from tests.conformkit.reports import of, one

pytest_plugins = ["pytester"]

LONG_S = 100.0
PLUGIN = "oarbank_conformkit.pytest_plugin"
"""Named, for the sake of a checkout that was installed before it had an entry point; named twice it is loaded once."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
    return bundles.build(tmp_path / "module", bundles.runner(), duty_specs=None, capabilities=["cancellable"])


def here(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    """Run pytest in this process, where nothing is started that measures."""
    return pytester.runpytest_inprocess("-p", PLUGIN, "-p", "no:cacheprovider", *args)


def run(at: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", PLUGIN, *map(str, args)]
    return subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=LONG_S, check=False)


# ---- what became of a rule ------------------------------------------------------------------------------

OUTCOMES = [
    ("it holds", [one("pass")], "duty.reports", "returns", ""),
    ("advice", [one("warn", "duty.units")], "duty.units", "returns", ""),
    ("it fails", [one("pass"), one("fail")], "duty.reports", "Refused", "failed: a fail check\n  why it is fail"),
    ("nobody can tell", [one("pass"), one("unknown")], "duty.reports", "Refused", "could not tell: a unknown check"),
    ("advice that nobody can give", [one("unknown", "duty.units")], "duty.units", "skip", "could not tell"),
    ("it does not apply", [one("skip")], "duty.reports", "skip", "why it is skip"),
    ("it applies to one of two", [one("skip"), one("pass")], "duty.reports", "returns", ""),
    ("it did not come up", [one("pass")], "duty.stop", "skip", "did not come up"),
    ("something before it failed", [one("fail", "duty.runs")], "duty.stop", "skip", "what went wrong: duty.runs"),
]


@pytest.mark.parametrize(("why", "checks", "rule", "outcome", "words"), OUTCOMES, ids=[row[0] for row in OUTCOMES])
def test_only_what_holds_is_green(why: str, checks: list, rule: str, outcome: str, words: str) -> None:
    seen, text = "returns", ""
    try:
        told(rule, of(*checks))
    except Refused as exc:
        seen, text = "Refused", str(exc)
    except pytest.skip.Exception as exc:
        seen, text = "skip", str(exc)

    assert seen == outcome
    assert words in text


def test_a_failure_shows_the_sentence_and_the_evidence_and_no_control_character() -> None:
    failed = check("runner", "duty.burst", "no \x1bburst", "fail", "held 0.9\x07", {"held": 0.9, "limit": 0.45})

    with pytest.raises(Refused) as refused:
        told("duty.burst", of(replace(failed)))

    assert str(refused.value).splitlines() == [
        f"{catalogue()['duty.burst'].says} (must, {catalogue()['duty.burst'].source})",
        "",
        "failed: no \N{SYMBOL FOR ESCAPE}burst",
        "  held 0.9\N{SYMBOL FOR BELL}",
        "  held: 0.9",
        "  limit: 0.45",
    ]


# ---- in a process of its own ----------------------------------------------------------------------------


@needs.posix()
def test_a_module_is_judged_beside_the_tests_that_are_there(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    starts = tmp_path / "starts"
    source = (folder / "runner.py").read_text()
    (folder / "runner.py").write_text(f"import sys\nopen({str(starts)!r}, 'a').write(sys.argv[1] + ' ')\n{source}")

    done = run(tmp_path, "--oarbank-module", "module", "-v")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_own.py::test_own PASSED" in done.stdout
    assert "module/oarbank-module.toml::golden.digest PASSED" in done.stdout
    assert re.search(r"oarbank-module.toml::duty.burst SKIPPED \(did not\s+come\s+up", done.stdout)
    assert " 0 failed, 0 unknown," in done.stdout
    assert "org.example.standin 1.2.3 conforms" in done.stdout
    assert starts.read_text().split().count("doctor") == 1  # however many items ask


@needs.posix()
def test_a_broken_module_fails_the_rule_that_it_breaks(folder: Path, tmp_path: Path) -> None:
    golden = bundles.golden(bundles.GOLDEN)
    golden["expected"]["digest"] = "0" * 64
    (folder / "goldens" / "selftest.json").write_text(json.dumps(golden))
    source = (folder / "runner.py").read_text()
    (folder / "runner.py").write_text(
        f"import sys\nif sys.argv[1] == 'doctor':\n    open({str(tmp_path / 'starts')!r}, 'w').close()\n{source}"
    )

    chosen = [f"module/oarbank-module.toml::{rule}" for rule in ("golden.digest", "golden.exit")]
    done = run(tmp_path, "--oarbank-module", folder, "-m", "conformance", *chosen)

    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert not (tmp_path / "starts").exists()  # nothing but what was asked for is run
    assert "FAILED module/oarbank-module.toml::golden.digest" in done.stdout
    assert "The digest of a golden's result is the one the golden expects." in done.stdout
    assert "Traceback" not in done.stdout


def test_a_module_for_another_platform_is_no_green_run(pytester: pytest.Pytester) -> None:
    other = next(one for one in ("windows-amd64", "linux-amd64") if one != this_host().platform)
    bundles.build(pytester.path / "module", bundles.runner(), platforms=[other])

    done = here(pytester, "--oarbank-module", "module")

    done.assert_outcomes(failed=len(catalogue()))
    assert "could not tell: oarbank-module.toml: /requires/platforms: must list this host" in done.stdout.str()


def test_collecting_runs_nothing(pytester: pytest.Pytester) -> None:
    bundles.build(pytester.path / "module", f"open({str(pytester.path / 'ran')!r}, 'w')\n")

    done = here(pytester, "--oarbank-module", "module", "--collect-only", "-q")

    assert done.ret == 0
    assert [f"module/oarbank-module.toml::{rule}" for rule in catalogue()] == done.outlines[: len(catalogue())]
    assert not (pytester.path / "ran").exists()


WRONG = [
    ("no such folder", ["--oarbank-module", "nowhere"], "nowhere: must be a module's directory; found nothing there."),
    ("no such fixtures", ["--oarbank-module", "module", "--oarbank-fixtures", "no.json"], "no.json: must be readable"),
    ("no such data", ["--oarbank-module", "module", "--oarbank-data", "no"], "--data no: must be a folder"),
    ("fixtures of nothing", ["--oarbank-fixtures", "x.json"], "--oarbank-fixtures: needs a module"),
    ("data of nothing", ["--oarbank-data", "x"], "--oarbank-data: needs a module"),
    ("side by side", ["--oarbank-module", "module", "-n", "2"], "must have the machine alone to measure"),
]


@pytest.mark.parametrize(("why", "args", "sentence"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_use_is_said_in_one_line(why: str, args: list[str], sentence: str, pytester: pytest.Pytester) -> None:
    bundles.build(pytester.path / "module", bundles.runner())

    done = here(pytester, *args)

    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert sentence in done.stderr.str()
    assert "Traceback" not in done.stderr.str()


def test_without_the_option_nothing_that_takes_long_is_imported(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(
        "import sys\n\n"
        "def test_own():\n"
        "    assert 'oarbank_conformkit.pytest_plugin' in sys.modules\n"
        "    assert not {'pydantic', 'jsonschema', 'psutil', 'rich', 'oarbank_agent_check'} & set(sys.modules)\n"
    )

    done = run(tmp_path)

    assert "1 passed" in done.stdout, done.stdout + done.stderr
