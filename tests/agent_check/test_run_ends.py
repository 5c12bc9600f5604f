"""`run` with real processes: however a job or the agent ends, nothing of it is left and the reason is said."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_sdk.cli import main as sdk
from tests.agent_check.jobs_on_trial import DETACHED, LONG, PROGRAM, Trial, alive, bundle, descendants, end
from tests.agent_check.wait import eventually

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc and orphans"),
]
SHORT = json.dumps({"units": 2, "unit_s": 0.005})
FAST = ("--time-factor", "20")


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        ("SIGINT", 1, "stopped: Ctrl-C; it ended with status 75; standin/stopped"),
        ("SIGTERM", 1, "stopped: SIGTERM; it "),
        ("SIGHUP", 1, "stopped: SIGHUP; it "),
        ("SIGKILL", -9, ""),
    ],
    ids=("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"),
)
def test_no_process_is_left_however_the_agent_is_ended(number: str, code: int, said: str, trial: Trial) -> None:
    pids = trial.folder / "pids"
    module = bundle(
        trial.folder,
        IGNORES_SIGTERM + DETACHED,
        env={"PIDS": str(pids)},
    )
    with trial.running(module, *FAST) as process:
        eventually(pids.exists, "a detached child")
        trial.works()
        left = {*descendants(process), int(pids.read_text().split()[1])}
        ended = end(process, getattr(signal, number))

    assert len(left) >= 3  # guard, runner, child
    assert ended[0] == code
    assert said in ended[2]
    eventually(lambda: not [pid for pid in left if alive(pid)], "everybody is gone")


IGNORES_SIGTERM = """\
    def control(self):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return Control()
"""


def test_agent_that_was_killed_finds_its_state_and_the_journal_goes_on(trial: Trial) -> None:
    module = bundle(trial.folder)
    with trial.running(module, *FAST) as process:
        trial.works()
        end(process, signal.SIGKILL)
    before = trial.journal()
    with (trial.state / "journal.ndjson").open("a") as file:
        file.write('{"t": 1, "ki')  # what a kill leaves of a line

    done = trial.run(module, payload=SHORT)

    assert done.returncode == 0, done.stderr
    lines = (trial.state / "journal.ndjson").read_text().splitlines()
    assert [json.loads(line) for line in lines[: len(before)]] == before
    after = [json.loads(line) for line in lines[len(before) + 1 :]]
    assert next(entry["job"] for entry in after if entry["kind"] == "job_end") == before[2]["job"]
    times = [entry["t"] for entry in [*before, *after]]
    assert times == sorted(times)


def test_child_that_outlives_its_runner_is_ended(trial: Trial) -> None:
    pids = trial.folder / "pids"

    done = trial.run(bundle(trial.folder, DETACHED, env={"PIDS": str(pids)}), payload=SHORT)

    assert done.returncode == 0, done.stderr
    assert not [pid for pid in map(int, pids.read_text().split()) if alive(pid)]


def test_runner_that_is_deaf_to_a_stop_is_killed_after_its_grace(trial: Trial) -> None:
    deaf = IGNORES_SIGTERM + "    def stopped(self):\n        time.sleep(600)\n"

    with trial.running(bundle(trial.folder, deaf, grace_s=1), *FAST) as process:
        trial.works()
        code, _, err = end(process)

    assert code == 1
    assert "Ctrl-C: the job stops, in 1 s at most" in err
    assert err.splitlines()[-1].endswith("stopped: Ctrl-C; it did not end by itself and was killed")


def test_runner_as_the_sdk_writes_it_answers_a_stop_that_comes_with_sigterm(trial: Trial) -> None:
    module = trial.folder / "mine"
    assert sdk(["new", "runner", str(module)]) == 0

    with trial.running(module, *FAST, payload='{"units": 100000}') as process:
        trial.works()
        code, _, err = end(process, signal.SIGINT)

    assert code == 1
    assert "it ended with status 75; mine/stopped" in err


def test_second_interrupt_does_not_wait_for_the_grace(trial: Trial) -> None:
    deaf = IGNORES_SIGTERM + "    def stopped(self):\n        time.sleep(600)\n"

    with trial.running(bundle(trial.folder, deaf, grace_s=600), *FAST) as process:
        trial.works()
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while "once more ends it now" not in process.stderr.readline():
            pass
        code, _, err = end(process)

    assert code == 1
    assert "was killed" in err


def test_two_interrupts_at_once_are_both_heard(trial: Trial) -> None:
    deaf = IGNORES_SIGTERM + "    def stopped(self):\n        time.sleep(600)\n"

    with trial.running(bundle(trial.folder, deaf, grace_s=600), *FAST) as process:
        trial.works()
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM):
            process.send_signal(number)
        code, _, err = end(process, signal.SIGCONT)

    assert code == 1
    assert "was killed" in err


FAILURES = [
    (
        "failure.json",
        "    def work(self, payload):\n"
        "        replace_text('failure.json', json.dumps({'reason': 'standin/no_model', 'detail': 'none\\nhere'}))\n"
        "        sys.exit(3)\n",
        "failed: standin/no_model: none here; it ended with status 3",
    ),
    (
        "traceback",
        "    def work(self, payload):\n        raise ValueError('a bad day')\n",
        "failed: it ended with status 1 and left no failure.json; its last words: ValueError: a bad day",
    ),
    (
        "signal",
        "    def work(self, payload):\n        os.kill(os.getpid(), signal.SIGKILL)\n",
        "failed: it was ended by signal 9 and left no failure.json",
    ),
    (
        "no result",
        "    def write_result(self):\n        pass\n",
        "failed: it must leave result.json when it ends with status 0; found none",
    ),
    (
        "bad result",
        "    def write_result(self):\n        replace_text(self.args.out, '{}')\n",
        "failed: result.json: must have schema; found none",
    ),
    (
        "missing artifact",
        "    def texts(self):\n"
        "        return []\n"
        "    def write_result(self):\n"
        "        super().write_result()\n"
        "        result = json.load(open(self.args.out))\n"
        "        result['artifacts'] = [{'name': 'a', 'files': [{'path': 'a.txt', 'local': 'a.txt'}]}]\n"
        "        replace_text(self.args.out, json.dumps(result))\n",
        "failed: result.json: files it names must be there; found no such file in its folder: a.txt",
    ),
]


@pytest.mark.parametrize(("why", "body", "said"), FAILURES, ids=[row[0] for row in FAILURES])
def test_job_that_fails_says_why_and_leaves_no_folder(why: str, body: str, said: str, trial: Trial) -> None:
    done = trial.run(bundle(trial.folder, body), payload=SHORT)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"oarbank-agent-check: {said}"), done.stderr
    assert not list(trial.folder.glob("standin-*"))


def test_runner_that_cannot_be_started_is_named(trial: Trial) -> None:
    module = bundle(trial.folder)
    manifest = module / "oarbank-module.toml"
    manifest.write_text(re.sub(r'exec = \["python", ', 'exec = ["{bundle}/nothing", ', manifest.read_text()))

    done = trial.run(module)

    assert done.returncode == 1
    assert "failed: the runner must start; No such file or directory" in done.stderr


def test_one_agent_at_a_time_uses_a_state(trial: Trial) -> None:
    module = bundle(trial.folder)
    with trial.running(module, *FAST) as process:
        trial.works()
        done = trial.run(module, payload=SHORT)
        end(process)

    assert done.returncode == 3
    assert "one agent at a time uses a state; found another" in done.stderr


@pytest.mark.parametrize("full", ["journal", "stdout"])
def test_full_disk_ends_the_job_with_a_line(full: str, trial: Trial) -> None:
    words = ["--journal", "/dev/full"] if full == "journal" else ["--journal", "-"]
    module = bundle(trial.folder)
    if full == "journal":
        done = trial.run(module, *words)
    else:
        with open("/dev/full", "w", encoding="utf-8") as nowhere:
            done = trial.run_words(*trial.words(module, *words), stdout=nowhere)

    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "must be written; No space left on device" in done.stderr


def test_reader_of_the_journal_that_leaves_ends_the_job(trial: Trial) -> None:
    with trial.running(bundle(trial.folder), "--journal", "-", *FAST) as process:
        assert process.stdout is not None
        process.stdout.readline()
        left = descendants(process)
        process.stdout.close()
        process.wait(timeout=60)

    assert process.returncode == 3
    assert not [pid for pid in left if alive(pid)]


@pytest.mark.parametrize(
    ("closed", "code"), [("2>&-", 0), (">/dev/null 2>/dev/full", 0), (">&-", 3), (">&- 2>&-", 3), (">/dev/full", 3)]
)
def test_result_is_kept_whoever_listens(closed: str, code: int, trial: Trial) -> None:
    words = trial.words(bundle(trial.folder), payload=SHORT)
    shell = ["sh", "-c", f'"$@" {closed}', "sh", PROGRAM, "run", *words]
    done = subprocess.run(shell, cwd=trial.folder, capture_output=True, text=True, timeout=110, check=False)

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout in ("", '{"texts": ["2 units"]}\n')
    assert (trial.folder / "standin-selftest-result" / "result.json").exists()


READERS = """
from oarbank_agent_check.gpu_readings import GpuReading
from oarbank_agent_check.readings import Unknown

class Blind:
    name, reads = "blind", "nothing"
    hindered = None
    def hindrance(self):
        return self.hindered
    def read(self, members):
        import time
        return GpuReading(time.monotonic(), unknown={key.pid: Unknown("the driver is mute.") for key in members})
    def close(self):
        pass

class None_(Blind):
    hindered = Unknown("there is no driver here. Install one.")
"""


def test_machine_whose_gpu_nobody_can_read_says_what_to_do_and_starts_nothing(trial: Trial) -> None:
    (trial.folder / "readers.py").write_text(READERS)
    trial.env = {"PYTHONPATH": str(trial.folder), "OARBANK_GPU_READER": "readers:None_"}

    done = trial.run(bundle(trial.folder), "--measure", "gpu")

    assert done.returncode == 3
    assert done.stderr == (
        "oarbank-agent-check: --measure gpu: GPU time must be readable here; blind: there is no driver here. Install"
        " one. Use --measure cpu where the units run on the CPU, or --no-check to run it unmeasured.\n"
    )
    assert not trial.journal()


def test_job_that_can_never_be_measured_is_stopped_and_nobody_can_tell(trial: Trial) -> None:
    (trial.folder / "readers.py").write_text(READERS)
    trial.env = {"PYTHONPATH": str(trial.folder), "OARBANK_GPU_READER": "readers:Blind"}

    done = trial.run(bundle(trial.folder), "--measure", "gpu", "--time-factor", "40", payload=LONG)

    assert done.returncode == 3, done.stderr
    assert "could not measure: the driver is mute." in done.stderr
    assert "could not tell whether it held its duty: none of " in done.stderr.splitlines()[-1]
    assert trial.journal("ban")


def test_state_that_cannot_be_read_is_never_taken_for_an_empty_one(trial: Trial) -> None:
    trial.state.mkdir()
    (trial.state / "state.json").write_text("{")

    done = trial.run(bundle(trial.folder), payload=SHORT)

    assert done.returncode == 3
    assert "state.json: must be the state that a run left;" in done.stderr
    assert len(done.stderr.splitlines()) == 1
