"""`oarbank-agent-check` from outside: what it prints, where, and its exit code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from oarbank_agent_check.commands.sample import exit_code
from oarbank_agent_check.process_table import ProcTable, system_table
from oarbank_agent_check.readings import Sample, UnknownProcess
from oarbank_agent_check.render import json_line, readable_lines
from oarbank_agent_check.sampling import Ending, take_samples
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.wait import eventually

PROGRAM = str(Path(sys.executable).with_name("oarbank-agent-check"))
MODULE = [sys.executable, "-m", "oarbank_agent_check"]
LINUX = pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc and thread clocks")
HEARS_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""
SLEEP = "import sys; sys.stdin.read()"
CPU = ("--measure", "cpu")


def run(*arguments: object, program: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [*(program or [PROGRAM]), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def start():
    started: list[subprocess.Popen] = []

    def begin(code: str) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def watch():
    """Start the program on a pid, in the middle of which the test does something."""
    started: list[subprocess.Popen] = []

    def begin(pid: int, count: int) -> subprocess.Popen:
        arguments = ["sample", *CPU, "--pid", str(pid), "--count", str(count), "--interval", "0.1", "--json"]
        process = subprocess.Popen(
            # A shell starts its background jobs with interrupts ignored, and children inherit that.
            [sys.executable, "-c", HEARS_INTERRUPTS, PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def documents(output: str) -> list[dict]:
    """Give the samples printed, each judged against its schema."""
    lines = output.splitlines()
    for line in lines:
        verdict = judge("gpu-sample-1", line)
        assert verdict.valid, verdict.faults
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("program", [[PROGRAM], MODULE], ids=["script", "module"])
def test_the_version_is_that_of_the_package(program):
    found = run("--version", program=program)
    assert (found.returncode, found.stdout) == (0, f"oarbank-agent-check {version('oarbank-agent-check')}\n")


@pytest.mark.parametrize("command", [[], ["sample"]])
def test_help_names_the_exit_codes_and_commands(command):
    found = run(*command, "--help")
    assert found.returncode == 0
    words = " ".join(found.stdout.split())
    assert "Exit codes: 0 " in words
    assert "2 wrong use, 3 " in words
    assert ("--pid" if command else "COMMAND") in words


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "COMMAND"),
        (["smaple"], "invalid choice: 'smaple'"),
        (["sample"], "--pid"),
        (["sample", "--pid", "me"], "--pid: must be a process id, 1 or more; found 'me'"),
        (["sample", "--pid", "0"], "--pid: must be a process id, 1 or more; found '0'"),
        (["sample", "--pid", "-4"], "--pid"),
        (["sample", "--pid", "9" * 200], "--pid: must be a process that runs on this machine; no such process: 999"),
        (["sample", "--pid", "9" * 5000], "no such process: 999"),
        (["sample", "--pid", "00"], "--pid: must be a process id, 1 or more; found '00'"),
        (["sample", "--pid", "1", "--count", "1.5"], "--count: must be a whole number, 0 or more; found '1.5'"),
        (["sample", "--pid", "1", "--interval", "nan"], "--interval: must be 0.05 to 3600 seconds; found 'nan'"),
        (["sample", "--pid", "1", "--interval", "0"], "--interval: must be 0.05 to 3600 seconds; found '0'"),
        (["sample", "--pid", "1", "--interval", "1e9"], "--interval: must be 0.05 to 3600 seconds; found '1e9'"),
        (["sample", "--pid", str(1 << 30)], f"pid {1 << 30}: must be a process that runs on this machine; found none"),
    ],
)
def test_wrong_use_is_one_line_on_stderr_and_exit_2(arguments, line):
    found = run(*arguments)
    assert (found.returncode, found.stdout) == (2, "")
    assert line in found.stderr
    assert found.stderr.startswith("oarbank-agent-check")
    assert found.stderr.count("\n") == 1
    assert len(found.stderr) < 300


@LINUX
def test_a_zombie_is_no_process_that_runs(start):
    process = start(SLEEP)
    process.kill()
    eventually(lambda: system_table().identify(process.pid) is None, "it is a zombie")
    found = run("sample", *CPU, "--pid", process.pid)
    assert found.returncode == 2
    assert "found none" in found.stderr


def test_json_is_one_valid_document_a_line_with_a_known_zero(start):
    process = start(SLEEP)
    found = run("sample", *CPU, "--pid", process.pid, "--count", 3, "--interval", 0.1, "--json")
    assert (found.returncode, found.stderr) == (0, "")
    samples = documents(found.stdout)
    assert len(samples) == 3
    for sample in samples:
        assert sample["pids"] == [process.pid]
        assert sample["source"] == "cpu-threads"
        assert sample["unknown"] == []
        assert sample["share"] < 0.3
        assert sample["window_s"] >= 0.05
    assert [sample["t"] for sample in samples] == sorted(sample["t"] for sample in samples)


@pytest.mark.realtime
def test_a_program_that_burns_reads_what_its_own_clock_says(start):
    process = start("import time\nprint(flush=True)\nwhile True: pass")
    process.stdout.readline()
    begin = used_s(process.pid)
    found = run("sample", *CPU, "--pid", process.pid, "--interval", 1, "--json")
    [sample] = documents(found.stdout)
    # The program is measured for a part of the time between the two looks at its clock.
    assert 0 < sample["busy_s"] <= used_s(process.pid) - begin + 0.05
    assert sample["share"] == pytest.approx(sample["busy_s"] / sample["window_s"])


def used_s(pid: int) -> float:
    import psutil

    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def test_descendants_belong_to_it_with_children_only(start):
    code = "import subprocess, sys\np = subprocess.Popen([sys.executable, '-c', 'input()'])\nprint(p.pid, flush=True)\n"
    process = start(code + "p.wait()")
    child = int(process.stdout.readline())
    [alone] = documents(run("sample", *CPU, "--pid", process.pid, "--interval", 0.1, "--json").stdout)
    [together] = documents(run("sample", *CPU, "--pid", process.pid, "--interval", 0.1, "--json", "--children").stdout)
    assert alone["pids"] == [process.pid]
    assert together["pids"] == sorted([process.pid, child])


def test_a_readable_line_for_a_person(start):
    process = start(SLEEP)
    found = run("sample", *CPU, "--pid", process.pid, "--interval", 0.1)
    assert found.returncode == 0
    assert re.fullmatch(
        rf"\d\d:\d\d:\d\d  share 0\.\d{{3}}  busy 0\.\d{{3}} s of \d\.\d{{3}} s  cpu-threads  pid {process.pid}\n",
        found.stdout,
    )


@pytest.mark.parametrize(("count", "code"), [(1000, 3), (0, 0)])
def test_a_process_that_ends_in_the_middle_leaves_its_samples_and_a_line(start, watch, count, code):
    process = start(SLEEP)
    watching = watch(process.pid, count)
    first = watching.stdout.readline()  # flushed line by line, or this would wait for ever
    process.kill()
    process.wait()
    rest, errors = watching.communicate(timeout=60)
    assert documents(first + rest)
    assert watching.returncode == code
    assert errors.count("\n") == 1
    assert re.search(rf"pid {process.pid}: ended after \d+", errors)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX: signals")
@pytest.mark.parametrize(("count", "code"), [(1000, 3), (0, 0)])
def test_an_interrupt_ends_it_without_a_traceback(start, watch, count, code):
    process = start(SLEEP)
    watching = watch(process.pid, count)
    watching.stdout.readline()
    watching.send_signal(signal.SIGINT)
    _rest, errors = watching.communicate(timeout=60)
    assert (watching.returncode, errors) == (code, "")


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX: pipes that break")
def test_a_reader_that_leaves_is_no_traceback(start, watch):
    process = start(SLEEP)
    watching = watch(process.pid, 0)
    watching.stdout.readline()
    watching.stdout.close()
    errors = watching.stderr.read()
    assert watching.wait(timeout=60) == 3
    assert errors == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux: a device that is always full")
def test_samples_that_cannot_be_written_are_exit_3_and_one_line(start):
    process = start(SLEEP)
    command = [PROGRAM, "sample", *CPU, "--pid", str(process.pid), "--interval", "0.1"]
    with open("/dev/full", "w", encoding="utf-8") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert found.returncode == 3
    assert found.stderr.count("\n") == 1
    assert "the output must be written; No space left on device." in found.stderr


def test_one_sample_is_called_one(start):
    process = start("import time; time.sleep(0.7)")
    found = run("sample", *CPU, "--pid", process.pid, "--interval", 60)
    assert found.stderr.endswith(": ended after 1 of 1 sample\n")


# ---- the parts behind it, in process -------------------------------------------------------------

UNKNOWN = Sample(1e9, 2.0, (7,), None, None, "cpu-threads", (UnknownProcess(7, "hidden. Run as its owner."),))


def test_unknown_is_never_shown_as_a_number():
    lines = readable_lines(UNKNOWN)
    assert "share unknown" in lines[0]
    assert lines[1].strip() == "pid 7: hidden. Run as its owner. Nothing was counted as zero."
    assert json.loads(json_line(UNKNOWN))["share"] is None
    assert judge("gpu-sample-1", json_line(UNKNOWN)).valid


@pytest.mark.parametrize(
    ("ending", "asked", "unread", "code"),
    [
        (Ending.ENOUGH, 3, 0, 0),
        (Ending.ENDED, 0, 0, 0),
        (Ending.ENDED, 3, 0, 3),
        (Ending.ENOUGH, 3, 1, 3),
        (Ending.ENDED, 0, 2, 3),
    ],
)
def test_what_was_unknown_or_is_missing_is_exit_3(ending, asked, unread, code):
    assert exit_code(ending, asked=asked, unread=unread) == code


def test_a_source_that_failed_as_a_whole_is_named():
    broken = Sample(1e9, 2.0, (), None, None, "cpu-threads", (UnknownProcess(None, "it broke."),))
    assert readable_lines(broken)[1].strip().startswith("cpu-threads: it broke.")
    assert judge("gpu-sample-1", json_line(broken)).valid


def test_many_processes_are_counted_and_not_listed():
    many = Sample(1e9, 2.0, tuple(range(1, 10)), 0.5, 1.0, "cpu-threads")
    assert readable_lines(many)[0].endswith("pid 1, 2, 3, 4, 5 and 4 more")


class PaperSource:
    """A source that remembers what was done with it."""

    name, reads = "paper", "nothing"

    def __init__(self) -> None:
        self.done: list[str] = []

    def start(self) -> None:
        self.done.append("start")

    def sample(self) -> Sample:
        self.done.append("sample")
        return UNKNOWN

    def stop(self) -> None:
        self.done.append("stop")


@pytest.mark.parametrize(
    ("lives", "count", "ending", "taken"),
    [
        ([True] * 99, 2, Ending.ENOUGH, 2),
        ([True] * 3 + [False] * 99, 99, Ending.ENDED, None),
        ([False], 1, Ending.ENDED, 1),
    ],
)
def test_every_interval_is_handed_over_and_the_source_is_stopped(lives, count, ending, taken):
    source, found, answers = PaperSource(), [], iter(lives)
    begin = time.monotonic()
    got = take_samples(source, lambda: next(answers), interval_s=0.05, count=count, hand_over=found.append)
    assert got == (ending, len(found))
    assert found
    assert taken in (None, len(found))
    assert source.done == ["start", *["sample"] * len(found), "stop"]
    assert time.monotonic() - begin >= 0.05 * (len(found) - 1) - 0.001


def test_a_source_is_stopped_when_the_receiver_fails():
    source = PaperSource()

    def refuse(sample: Sample) -> None:
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        take_samples(source, lambda: True, interval_s=0.01, count=3, hand_over=refuse)
    assert source.done[-1] == "stop"
