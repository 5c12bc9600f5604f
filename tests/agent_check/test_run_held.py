"""`run` with real processes: who keeps the duty gets a result, who takes more is paused, stopped and banned."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import psutil
import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from tests.agent_check.jobs_on_trial import (
    LLMSERVE,
    LONG,
    PROMPT,
    UNGOVERNED,
    Trial,
    bundle,
    descendants,
    end,
    ungoverned_llmserve,
)
from tests.agent_check.wait import eventually

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc and thread clocks"),
]
SHORT = json.dumps({"units": 2, "unit_s": 0.005})


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


def test_llmserve_ends_with_its_result_and_held_its_duty(trial: Trial) -> None:
    done = trial.run(LLMSERVE, "--stage", "batch", "--time-factor", "4", payload=json.dumps(PROMPT))

    assert done.returncode == 0, done.stderr
    payload = json.loads(done.stdout)
    assert payload["prompts"] == 1
    assert payload["tokens"] == 150
    kept = trial.folder / "llmserve-batch-result"
    assert json.loads((kept / "result.json").read_text())["payload"] == payload
    assert len((kept / "completions.jsonl").read_text().splitlines()) == 1
    held = re.search(r"held (0\.\d+), the mean of (\d+) samples by cpu-threads; asked at most 0\.300", done.stderr)
    assert held is not None, done.stderr
    assert 0.1 < float(held[1]) < 0.4  # a loaded machine takes from it; nothing adds to it
    assert not trial.journal("pause")
    assert [entry["duty"] for entry in trial.journal("duty")] == [0.3]


def test_module_without_its_governor_is_paused_twice_then_stopped_and_banned_for_an_hour(trial: Trial) -> None:
    module = ungoverned_llmserve(trial.folder / "free")
    payload = json.dumps({**PROMPT, "max_tokens": 30_000})

    stopped = trial.run(module, "--stage", "batch", "--time-factor", "40", payload=payload, duty="0.1")

    assert stopped.returncode == 1
    assert "stopped: " in stopped.stderr.splitlines()[-1]
    samples = [entry for entry in trial.journal("sample") if not entry.get("baseline")]
    assert min(entry["share"] for entry in samples[:3]) > 0.2
    orders = [entry["kind"] for entry in trial.journal() if entry["kind"] in ("pause", "resume", "stop", "ban")]
    assert orders[:4] == ["pause", "resume", "pause", "resume"]
    assert sorted(orders[4:]) == ["ban", "stop"]
    pause = trial.journal("pause")[0]
    assert pause["until"] - pause["t"] == pytest.approx(60)
    (ban,) = trial.journal("ban")
    assert ban["until"] - ban["t"] == pytest.approx(3600)

    refused = trial.run(module, "--stage", "batch", payload=payload)
    assert refused.returncode == 1
    assert re.search(r"not started: .*banned.*, until \d\d:\d\d:\d\d \(in \d+:\d\d\)$", refused.stderr), refused.stderr
    assert trial.journal("hold")

    # An hour at this factor is 3.6 seconds. Judged again, it would be banned again.
    again = ("--time-factor", "1000", "--no-check")
    short = json.dumps({"prompts": ["a"], "max_tokens": 2})
    eventually(lambda: trial.run(module, *again, payload=short).returncode == 0, "the ban is over")
    assert trial.journal("unban")
    trial.replays()


def test_runner_that_cannot_hold_itself_is_frozen_by_the_system(trial: Trial) -> None:
    module = bundle(trial.folder, UNGOVERNED, capabilities=["cooperative_throttle", "freeze_ok", "progress_events"])

    with trial.running(module, "--time-factor", "10", duty="0.1") as process:
        eventually(lambda: psutil.STATUS_STOPPED in map(status, descendants(process)), "it is frozen")
        assert trial.journal("pause")
        code, _, err = end(process)

    assert code == 1
    assert "stopped: Ctrl-C" in err  # a frozen one is thawed to be told


def status(pid: int) -> str:
    try:
        return psutil.Process(pid).status()
    except psutil.NoSuchProcess:
        return ""


def test_runner_that_can_be_held_in_no_way_is_released_at_its_first_strike(trial: Trial) -> None:
    module = bundle(trial.folder, UNGOVERNED, capabilities=["cooperative_throttle"])

    done = trial.run(module, "--time-factor", "20", duty="0.1")

    assert done.returncode == 1
    assert trial.journal("release")
    assert not trial.journal("pause")


def test_no_check_measures_and_judges_nothing(trial: Trial) -> None:
    module = bundle(trial.folder, UNGOVERNED)

    with trial.running(module, "--time-factor", "20", "--no-check", "--out", trial.folder / "out") as process:
        assert process.stderr is not None
        while not re.search(r" measured \d", line := process.stderr.readline()):
            assert line, "it ended before anything was measured"
        code, _, err = end(process)

    assert code == 1
    assert not trial.journal("sample")
    assert "held " in err
    assert not (trial.folder / "out").exists()  # nothing came, nothing is left


def test_pressure_halves_the_duty_and_twice_the_target_ends_it(trial: Trial) -> None:
    pressure = trial.folder / "pressure"
    pressure.write_text("0.2\n")
    words = ["--level", "0.8", "--pressure", f"cat {pressure}", "--time-factor", "10"]

    def duties() -> list[float]:
        return [entry["duty"] for entry in trial.journal("duty")]

    def pressures() -> list[float | None]:
        return [entry["value"] for entry in trial.journal("pressure")]

    with trial.running(bundle(trial.folder), *words) as process:
        eventually(lambda: pressures()[:1] == [0.2], "the first pressure")
        assert duties() == [0.8]
        pressure.write_text("1.0\n")
        eventually(lambda: 0.4 in duties(), "halved")
        pressure.write_text("no number\n")  # counts as the target
        eventually(lambda: None in pressures(), "a stale pressure")
        eventually(lambda: 0.2 in duties(), "halved again")
        pressure.write_text("2\n")
        eventually(lambda: duties()[-1] == 0, "nothing left")
        code, _, err = end(process, signal.SIGTERM)

    assert code == 1
    assert "--pressure: it must print a number of at least 0; found b'no number" in err
    assert duties()[:3] == [0.8, 0.4, 0.2]
    trial.replays()


def test_job_that_takes_too_long_is_stopped(trial: Trial) -> None:
    done = trial.run(bundle(trial.folder, timeout_s=1), payload=LONG)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("oarbank-agent-check: stopped: timeout_s: it may run for 1 s;")


def test_time_at_a_duty_of_0_is_not_the_jobs(trial: Trial) -> None:
    words = ["--level", "0.8", "--pressure", "echo 2", "--time-factor", "10"]
    with trial.running(bundle(trial.folder, timeout_s=2), *words) as process:
        eventually(lambda: len(trial.journal("pressure")) >= 20, "four seconds")
        code, _, err = end(process)

    assert code == 1
    assert "stopped: Ctrl-C" in err


def test_journal_on_stdout_is_nothing_but_the_journal(trial: Trial) -> None:
    done = trial.run(bundle(trial.folder), "--journal", "-", payload=SHORT)

    assert done.returncode == 0, done.stderr
    assert {json.loads(line)["kind"] for line in done.stdout.splitlines()} >= {"job", "admit", "duty", "job_end"}
    assert '{"texts": ["2 units"]}' in done.stderr
    assert not (trial.state / "journal.ndjson").exists()


def test_second_result_gets_a_folder_of_its_own(trial: Trial) -> None:
    module = bundle(trial.folder)
    assert trial.run(module, payload=SHORT).returncode == 0
    assert trial.run(module, payload=SHORT).returncode == 0

    assert sorted(path.name for path in trial.folder.glob("standin-*")) == [
        "standin-selftest-result",
        "standin-selftest-result-2",
    ]
