"""Documents across packages: what one writes, the others read, and each keeps its schema on the way.

The packages meet in files alone. Here one run of a runner from the template is steered by agent-check's own writer, and
everything that was written is judged and given to every reader there is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check import journal
from oarbank_agent_check.duty_reports import DutyReports
from oarbank_agent_check.jobs.control_document import merged
from oarbank_agent_check.jobs.manifest import read_manifest
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_conformkit import fixtures
from oarbank_conformkit.render import json as json_report
from oarbank_sdk import events
from oarbank_sdk.commands.new import write_runner
from oarbank_sdk.contracts.judge import judge, judge_value
from oarbank_sdk.control import Control
from tests.agent_check import journals
from tests.conformkit import reports
from tests.contracts.examples import ROOT

MODULES = ("packages/llmserve", "packages/sdk/src/oarbank_sdk/templates/runner")


def valid(kind: str, data: bytes | str | None) -> dict[str, Any]:
    """The value of a document that must be there and be valid."""
    assert data is not None
    verdict = judge(kind, data)
    assert verdict.faults == [], kind
    return verdict.value


def until(holds: Callable[[], object], what: str) -> None:
    """Wait for what another process does; only one that hangs reaches the end."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


# ---- one run, steered and stopped ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scratch, int, list[bytes]]]:
    """The folder of a run that got a duty and a stop, its exit code, and the control documents that it was given."""
    folder = tmp_path_factory.mktemp("module") / "bench"
    write_runner(folder, "bench")
    module = read_manifest(str(folder)).module
    with Scratch("across") as scratch:
        task = Task("long", module.stages[0], {"units": 10**6}, {"units": 10**6})
        scratch.write_first(envelope(module, task, "linux-amd64"), {})
        written, control = [], scratch.workdir / "control.json"
        words = ["run", "--spec", "spec.json", "--workdir", ".", "--out", "result.json", "--events", "events.ndjson"]
        with subprocess.Popen([sys.executable, "-I", str(folder / "runner.py"), *words], cwd=scratch.workdir) as runner:
            written.append(control.read_bytes())
            until(scratch.has_phase, "the runner must write a phase")
            for changes, done in (
                ({"gpu_duty": 0.5, "reason": "beside a game"}, lambda: b"gpu_duty" in scratch.events(0)),
                ({"stop": True}, lambda: runner.poll() is not None),
            ):
                scratch.change_control(changes)
                written.append(control.read_bytes())
                os.kill(runner.pid, signal.SIGUSR1)
                until(done, f"the runner must act on {changes}")
        yield scratch, runner.returncode, written


@pytest.mark.realtime
def test_what_agent_check_writes_keeps_its_schema_and_the_duty_stays_beside_the_stop(
    stopped: tuple[Scratch, int, list[bytes]],
) -> None:
    scratch, _, written = stopped
    spec = valid("spec-envelope-1", (scratch.workdir / "spec.json").read_bytes())
    control = [valid("runner-control-1", data) for data in written]

    assert spec["payload"] == {"units": 10**6}
    assert [one["seq"] for one in control] == [0, 1, 2]
    assert control[-1] == {"seq": 2, "gpu_duty": 0.5, "reason": "beside a game", "stop": True}


@pytest.mark.realtime
def test_every_event_that_the_sdk_writes_is_read_alike_by_everybody(stopped: tuple[Scratch, int, list[bytes]]) -> None:
    data = stopped[0].events(0)
    lines, rest = events.complete_lines(data)
    for line in lines:
        valid("runner-event-1", line)
    reported = [line for line in lines if b"gpu_duty" in line]
    for line in reported:
        valid("gpu-duty-event-1", line)
    read = [report for event in events.events(lines) if (report := events.duty_report(event))]
    agent = DutyReports()
    for i in range(0, len(data), 7):  # an agent reads what is there, in the middle of lines
        agent.feed(data[i : i + 7])

    assert rest == b""
    assert len(read) == len(reported) >= 1
    assert agent.newest == read[-1]
    assert read[-1].device == "cpu"


@pytest.mark.realtime
def test_a_stop_is_acknowledged_in_a_document_that_agent_check_finds(stopped: tuple[Scratch, int, list[bytes]]) -> None:
    scratch, code, _ = stopped

    assert code == 75
    assert valid("runner-failure-1", scratch.failure())["reason"].endswith("stopped")
    assert scratch.result() is None
    assert scratch.phase() == "work"


# ---- control documents, any of them --------------------------------------------------------------------

CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "gpu_duty": st.none() | st.floats(0, 1),
        "pause": st.booleans(),
        "stop": st.booleans(),
        "threads": st.none() | st.integers(1, 512),
        "reason": st.none() | st.text(max_size=30),
        "of_another_version": st.integers(),
    },
)


@given(changes=st.lists(CHANGES, min_size=1, max_size=8))
def test_control_holds_what_agent_check_merged(
    changes: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("work")
    path, told, wanted = folder / "control.json", Control(folder), dict[str, Any]()
    for seq, one in enumerate(changes, start=1):
        path.write_text(json.dumps(merged(path.read_bytes() if path.exists() else None, one)), encoding="utf-8")
        wanted |= one
        told.refresh()

        assert valid("runner-control-1", path.read_bytes()) == {**wanted, "seq": seq}
        assert (told.seq, told.gpu_duty_fault) == (seq, None)
        assert told.gpu_duty == wanted.get("gpu_duty")
        assert (told.stop, told.pause) == (wanted.get("stop", False), wanted.get("pause", False))
        assert told.threads == wanted.get("threads")


# ---- what people and the kit write ---------------------------------------------------------------------


@pytest.mark.parametrize("place", MODULES)
def test_fixtures_and_manifest_of_our_modules_keep_their_contracts(place: str) -> None:
    data = (ROOT / place / "conformance.json").read_bytes()
    manifest = tomllib.loads((ROOT / place / "oarbank-module.toml").read_text("utf-8").replace("{{name}}", "bench"))

    read = fixtures.fixtures("conformance.json", data)

    assert judge_value("module-manifest-1", manifest) == []
    assert len(valid("conformance-1", data)["duty_specs"]) == len(read.duty_specs) >= 1
    assert (read.file_fault, read.entry_faults, read.unknown_keys) == (None, (), ())


@pytest.mark.parametrize("kind", ["all passed", "GPU and CPU", "never started"])
def test_report_of_the_kit_keeps_its_schema(kind: str) -> None:
    found = reports.every_kind()[kind]

    document = valid("conformance-report-1", json_report.render(found))

    assert len(document["checks"]) == len(found.checks)


@pytest.mark.parametrize("name", journals.NAMES)
def test_journals_of_agent_check_keep_their_schema_and_are_read_back(name: str) -> None:
    heard = journals.inputs(name)
    for entry in [*heard, *journals.judge(heard)]:
        valid("agent-journal-1", journal.line_of(entry))

    assert list(journal.read(journal.line_of(one).encode() for one in heard)) == heard
