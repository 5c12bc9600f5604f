"""The runner as a process: what it writes, how it exits, and how fast it hears a stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from oarbank_sdk.canonical import sha256
from tests import needs
from tests.llmserve.processes import BUNDLE, Run, environment, spec

GOLDEN = json.loads((BUNDLE / "goldens/selftest.json").read_text())
LONG = {"prompts": ["a long enough task"], "max_tokens": 4000, "backend": "stub"}
ACKNOWLEDGED_S = 2.0  # the conformance kit's bound

ONE_CPU = {min(os.sched_getaffinity(0))} if hasattr(os, "sched_getaffinity") else None
WORLDS: list[tuple[str, dict[str, Any]]] = [
    ("C locale", {"env": {"LANG": "C", "LC_ALL": "C"}}),
    ("another locale and no UTF-8 mode", {"env": {"LANG": "tr_TR.ISO-8859-9", "LC_ALL": "", "PYTHONUTF8": "0"}}),
    ("one CPU, hashes seeded", {"cpus": ONE_CPU, "env": {"PYTHONHASHSEED": "7"}}),
    ("under a duty", {"control": {"seq": 0, "gpu_duty": 0.6}}),
]


@pytest.mark.parametrize("world", [row[1] for row in WORLDS], ids=[row[0] for row in WORLDS])
def test_self_test_meets_its_golden(tmp_path: Path, world: dict[str, Any]) -> None:
    with Run(tmp_path / "a folder with späces", spec(GOLDEN["payload"]), **world) as run:
        assert run.wait_for_exit() == 0
        result = run.json("result.json")

    assert sha256({"texts": result["payload"]["texts"]}) == GOLDEN["expected"]["digest"]
    assert (result["schema"], result["effective"]) == ("llmserve/result@1", {"backend": "stub", "device": "cpu"})
    assert run.written() == {"result.json", "completions.jsonl", "phase", "events.ndjson"}


def test_runner_works_from_a_folder_it_may_not_write_to(tmp_path: Path) -> None:
    bundle = tmp_path / "a bundle"
    bundle.mkdir()
    shutil.copy(BUNDLE / "llmserve_runner.py", bundle)
    payload = {"prompts": ["a"], "max_tokens": 2}
    with Run(tmp_path / "w", spec(payload), runner=bundle / "llmserve_runner.py") as run:
        assert run.wait_for_exit() == 0

    assert [path.name for path in bundle.iterdir()] == ["llmserve_runner.py"]


def test_batch_on_the_stand_in_writes_completions_and_says_cpu(tmp_path: Path) -> None:
    payload = {"prompts": ["one", "", "three"], "max_tokens": 5, "backend": "stub"}
    texts = []
    for attempt in ("first", "second"):
        with Run(tmp_path / attempt, spec(payload, "batch")) as run:
            assert run.wait_for_exit() == 0
            assert (run.workdir / "phase").read_text() == "batch\n"
            result = run.json("result.json")
            texts.append((run.workdir / "completions.jsonl").read_text())

    lines = [json.loads(line) for line in texts[0].splitlines()]
    assert texts[0] == texts[1]
    assert [(line["index"], line["tokens"], line["finish"]) for line in lines] == [
        (0, 5, "length"),
        (1, 0, "error"),
        (2, 5, "length"),
    ]
    assert result["effective"]["device"] == "cpu"
    assert (result["payload"]["prompts"], result["payload"]["failed"], result["payload"]["tokens"]) == (3, 1, 10)
    assert "texts" not in result["payload"]


def test_every_report_of_the_stand_in_says_cpu(tmp_path: Path) -> None:
    with Run(tmp_path, spec(GOLDEN["payload"]), control={"seq": 0, "gpu_duty": 0.5}) as run:
        assert run.wait_for_exit() == 0
        reports = run.events("gpu_duty")

    assert reports
    assert {report["data"]["device"] for report in reports} == {"cpu"}
    assert {report["data"]["duty"] for report in reports} == {0.5}


FAILURES: list[tuple[str, Any, str, int, str]] = [
    # behaviour, spec, reason, exit, detail
    ("no prompts", spec({"backend": "stub"}, "batch"), "llmserve/bad_spec", 2, "/prompts"),
    ("an unknown backend", spec({**LONG, "backend": "x"}, "batch"), "llmserve/bad_spec", 2, "/backend"),
    ("a path for a model", spec({"prompts": ["a"], "model": "../m.gguf"}, "batch"), "llmserve/bad_spec", 2, "/model"),
    ("an unknown stage", spec(LONG, "train"), "llmserve/bad_spec", 2, "/stage"),
    ("a spec that is no JSON", b"{", "llmserve/bad_spec", 2, "spec"),
    ("a spec that says it twice", b'{"schema": 1, "schema": 2}', "llmserve/bad_spec", 2, "spec"),
    ("a spec that is a list", b"[]", "llmserve/bad_spec", 2, "spec: must be an object"),
    (
        "a missing backend",
        spec({"prompts": ["a"], "model": "m", "backend": "mlx"}, "batch"),
        "llmserve/no_backend",
        3,
        "No module named 'mlx'",
    ),
    (
        "a missing model",
        spec({"prompts": ["a"], "model": "m.gguf"}, "batch"),
        "llmserve/no_model",
        3,
        "models/m.gguf: not on this node",
    ),
    (
        "nothing completed",
        spec({**LONG, "prompts": ["", ""]}, "batch"),
        "llmserve/all_failed",
        1,
        "the prompt is empty",
    ),
]


@pytest.mark.parametrize(
    ("document", "reason", "status", "detail"), [row[1:] for row in FAILURES], ids=[row[0] for row in FAILURES]
)
def test_failure_is_explained_before_the_exit(
    tmp_path: Path, document: Any, reason: str, status: int, detail: str
) -> None:
    data = tmp_path / "data"
    (data / "models").mkdir(parents=True)
    with Run(tmp_path / "w", document, data=data) as run:
        assert run.wait_for_exit() == status
        failure = run.json("failure.json")

    assert failure["reason"] == reason
    assert detail in failure["detail"]
    assert failure.get("fault") == {2: "job", 3: "host"}.get(status)
    assert b"Traceback" not in run.err
    if status != 1:
        assert run.written() == {"failure.json"}


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("absent.json", "spec: must be a file that can be read; No such file or directory"),
        ("folder", "spec: must be a file that can be read; Is a directory"),
        ("empty.json", "spec: "),
    ],
)
def test_spec_that_cannot_be_read_is_a_bad_spec(tmp_path: Path, name: str, detail: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.json").write_bytes(b"")
    argv = [sys.executable, "-I", str(BUNDLE / "llmserve_runner.py"), "run", "--spec", str(tmp_path / name)]
    argv += ["--workdir", str(tmp_path), "--out", str(tmp_path / "result.json")]
    ran = subprocess.run(argv, env=environment(tmp_path), capture_output=True, text=True, check=False)
    failure = json.loads((tmp_path / "failure.json").read_text())

    assert ran.returncode == 2
    assert (failure["reason"], failure["fault"]) == ("llmserve/bad_spec", "job")
    assert failure["detail"].startswith(detail)
    assert len(ran.stderr.splitlines()) == 1


def test_file_that_is_no_model_is_said_where_no_backend_is_installed(tmp_path: Path) -> None:
    (tmp_path / "data/models").mkdir(parents=True)
    (tmp_path / "data/models/m.gguf").write_text("I am a text file.")
    with Run(tmp_path / "w", spec({"prompts": ["a"], "model": "m.gguf"}, "batch"), data=tmp_path / "data") as run:
        assert run.wait_for_exit() == 3
        assert run.json("failure.json")["reason"] == "llmserve/no_model"
        assert "its first bytes are b'I am'" in run.json("failure.json")["detail"]


def test_disk_that_takes_no_completions_is_the_nodes_fault(tmp_path: Path) -> None:
    (tmp_path / "completions.jsonl.part").mkdir()
    with Run(tmp_path, spec({**LONG, "max_tokens": 2}, "batch")) as run:
        assert run.wait_for_exit() == 3
        assert (run.json("failure.json")["reason"], run.json("failure.json")["fault"]) == (
            "llmserve/cannot_write",
            "host",
        )


def acknowledged_s(run: Run, nudged_s: float) -> float:
    run.wait_for((run.workdir / "failure.json").exists, "an acknowledgement")
    return time.monotonic() - nudged_s


STOPS: list[tuple[str, dict[str, Any], bool]] = [
    # in the middle of                control document              SIGTERM right behind it
    ("free-running units", {"seq": 0}, False),
    ("an idle", {"seq": 0, "gpu_duty": 0.0005}, False),
    ("free-running units, killed too", {"seq": 0}, True),
    ("an idle, killed too", {"seq": 0, "gpu_duty": 0.0005}, True),
]


@pytest.mark.realtime
@pytest.mark.parametrize(("control", "killed"), [row[1:] for row in STOPS], ids=[row[0] for row in STOPS])
def test_stop_is_acknowledged(tmp_path: Path, control: dict[str, Any], killed: bool) -> None:
    with Run(tmp_path, spec(LONG, "batch")) as run:
        run.wait_for_phase()
        run.control({**control, "seq": 1})
        time.sleep(0.2)  # into the units, or the idle
        nudged_s = run.control({"seq": 2, "stop": True})
        if killed:
            run.process.terminate()
        assert acknowledged_s(run, nudged_s) < ACKNOWLEDGED_S
        assert run.wait_for_exit() == 75

    assert run.json("failure.json")["reason"] == "llmserve/stopped"
    assert run.json("failure.json")["fault"] == "transient"
    assert not {"result.json", "completions.jsonl"} & run.written()
    assert b"Traceback" not in run.err


WAITS = [{"seq": 0, "gpu_duty": 0}, {"seq": 0, "pause": True}]


@pytest.mark.realtime
@pytest.mark.parametrize("control", WAITS, ids=["at duty 0", "in a pause"])
@pytest.mark.parametrize("by", ["document", "SIGTERM"])
def test_stop_is_acknowledged_before_the_first_phase(tmp_path: Path, control: dict[str, Any], by: str) -> None:
    with Run(tmp_path, spec(LONG, "batch"), control=control) as run:
        time.sleep(0.5)  # it waits before it loads; too short a time tests the start instead, which must hold as well
        if by == "SIGTERM":
            run.process.terminate()
        else:
            run.control({"seq": 1, "stop": True})
        assert run.wait_for_exit() == 75
        assert run.json("failure.json")["fault"] == "transient"


@pytest.mark.realtime
def test_sigterm_without_a_document_is_a_stop(tmp_path: Path) -> None:
    with Run(tmp_path, spec(LONG, "batch")) as run:
        run.wait_for_phase()
        run.process.terminate()
        assert run.wait_for_exit() == 75


def test_stop_already_in_the_document_needs_no_nudge(tmp_path: Path) -> None:
    with Run(tmp_path, spec(LONG, "batch"), control={"seq": 5, "stop": True}) as run:
        assert run.wait_for_exit() == 75
        assert run.written() == {"failure.json"}


@pytest.mark.realtime
def test_pause_holds_and_is_left_out_of_the_rate(tmp_path: Path) -> None:
    with Run(tmp_path, spec({**LONG, "max_tokens": 120}, "batch")) as run:
        run.wait_for_phase()
        run.control({"seq": 1, "pause": True})
        time.sleep(1.0)
        run.control({"seq": 2})
        assert run.wait_for_exit() == 0
        fields = run.json("result.json")["payload"]

    assert fields["paused_s"] > 0.5
    assert fields["tokens_per_s"] == pytest.approx(fields["tokens"] / fields["seconds"], rel=0.05)


@pytest.mark.realtime
def test_duty_is_held_and_reported(tmp_path: Path) -> None:
    with Run(tmp_path, spec(LONG, "batch")) as run:
        run.wait_for_phase()
        run.control({"seq": 1, "gpu_duty": 0.3})
        wanted = 3
        run.wait_for(lambda: len([e for e in run.events("gpu_duty") if e["data"]["duty"] == 0.3]) >= wanted, "reports")
        reports = [event for event in run.events("gpu_duty") if event["data"]["duty"] == 0.3]

    assert all(report["value"] <= 0.4 for report in reports)
    assert max(report["value"] for report in reports) > 0.05  # it works at all


def test_wrong_arguments_are_wrong_use(tmp_path: Path) -> None:
    argv = [sys.executable, "-I", str(BUNDLE / "llmserve_runner.py"), "run", "--spec", "x"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    argv = [*argv[:4], "--spec", "x", "--workdir", str(tmp_path / "absent"), "--out", "x"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)


@pytest.mark.parametrize(("command", "status"), [("run", 0), ("doctor", -signal.SIGTERM)])
@needs.posix("signals")
def test_sigterm_during_the_imports_kills_a_doctor_and_no_runner(tmp_path: Path, command: str, status: int) -> None:
    """Packages beside the runner come first, so a stand-in for ours can send the signal at the worst moment."""
    shutil.copy(BUNDLE / "llmserve_runner.py", tmp_path)
    (tmp_path / "oarbank_llmserve").mkdir()
    (tmp_path / "oarbank_llmserve/__init__.py").write_text("")
    (tmp_path / "oarbank_llmserve/runner.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\ndef main():\n    return 0\n"
    )
    argv = [sys.executable, "-I", str(tmp_path / "llmserve_runner.py"), command]
    ran = subprocess.run(argv, capture_output=True, check=False)

    assert ran.returncode == status
