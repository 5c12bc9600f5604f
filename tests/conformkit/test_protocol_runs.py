"""Coordinators that fail as programs: each is a named failure, and neither the kit nor another suite suffers."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarbank_conformkit.checks import Check
from oarbank_conformkit.report import Report
from tests.conformkit import bundles
from tests.conformkit.conftest import Conform
from tests.leftovers import running_below

HANGS = "import time; time.sleep(60)"
CRASHES = "raise SystemExit('no settings')"
FLOODS = "import os\nwhile True: os.write(1, b'x' * 65536)"
DIES_IN_A_LINE = 'import os, sys; sys.stdin.readline(); os.write(1, b\'{"jsonrpc": "2.0", "id": 1, "res\')'
DETACHES = "import os, time\nif os.fork(): os._exit(0)\nos.setsid()\ntime.sleep(60)"
ANOTHER_PROTOCOL = (
    "import sys\nsys.stdin.readline()\n"
    'print(\'{"jsonrpc": "2.0", "id": 1, "result": {"protocol_version": 2}}\', flush=True)\n'
    "sys.stdin.read()"
)

PROGRAMS = [
    ("hangs", HANGS, "no answer to initialize in 1 s"),
    ("crashes", CRASHES, "it ended with exit 1 instead of answering initialize; last line of stderr: no settings"),
    ("floods", FLOODS, "no answer to initialize in 1 s"),
    ("dies in a line", DIES_IN_A_LINE, "it ended with exit 0 instead of answering initialize"),
    ("detaches", DETACHES, "it ended with exit 0 instead of answering initialize"),
    ("another protocol", ANOTHER_PROTOCOL, "/protocol_version: must be 1; found 2"),
]


def judged(conform: Conform, source: str, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Judge a coordinator that has a second to greet."""
    manifest = bundles.COORDINATOR.replace("timeouts = {", "timeouts = { initialize = 1,")
    monkeypatch.setattr(bundles, "COORDINATOR", manifest)
    return conform(bundles.runner(), coordinator=source, only=["protocol", "doctor.exit"])


def of(report: Report, rule: str) -> Check:
    (found,) = [one for one in report.checks if one.rule == rule]
    return found


@pytest.mark.realtime
@pytest.mark.parametrize(("how", "source", "sentence"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_coordinator_that_fails_as_a_program_fails_its_greeting(
    how: str, source: str, sentence: str, conform: Conform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = judged(conform, source, monkeypatch)

    assert of(report, "protocol.starts").status == "fail"
    assert sentence in of(report, "protocol.starts").detail
    assert of(report, "doctor.exit").status == "pass"
    assert running_below(tmp_path) == []


def test_runner_alone_has_no_coordinator_to_judge(conform: Conform) -> None:
    report = conform(bundles.runner(), only=["protocol"])

    assert [(one.rule, one.status) for one in report.checks] == [("protocol.starts", "skip")]
    assert "has no [coordinator]" in report.checks[0].detail


EXACTLY = {
    "HOME", "LANG", "LC_ALL", "OARBANK_ATTEMPT_ID", "OARBANK_DISABLED_SERVICES", "OARBANK_FOLDERS_FILE",
    "OARBANK_MODULE",
    "OARBANK_MODULE_DATA", "OARBANK_PLATFORM", "OARBANK_PROTOCOL", "OARBANK_SETTINGS_FILE", "OARBANK_TMP",
    "OARBANK_TOOLS_FILE", "OARBANK_WORKDIR", "PATH", "PYTHONUTF8", "TMPDIR",
}  # fmt: skip


def test_nothing_of_the_callers_environment_reaches_a_runner(conform: Conform, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_LIBRARY_PATH", "PYTHONPATH", "http_proxy", "TOKEN"):
        monkeypatch.setenv(name, "/of/the/author")
    body = f"    def work(self, payload):\n        sys.exit(' '.join({{*os.environ}} ^ {EXACTLY!r}) or 0)\n"

    report = conform(bundles.runner(body), duty_specs=None, only=["golden.exit"])

    assert of(report, "golden.exit").status == "pass", of(report, "golden.exit").detail
