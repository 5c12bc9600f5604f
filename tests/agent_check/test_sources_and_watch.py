"""The commands `sources` and `watch` from outside: what they print, where, and their exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oarbank_agent_check.readings import Unknown
from oarbank_agent_check.source_list import sources_here
from oarbank_agent_check.sources.gpu import OWN, VARIABLE
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.made_reader import Broken, Steady

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "oarbank_agent_check"]
READERS = "tests.agent_check.made_reader:"


def environment(reader: str | None = None) -> dict[str, str]:
    own = {VARIABLE: READERS + reader} if reader else {}
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **own}


def run(*arguments: object, reader: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
        env=environment(reader), encoding="utf-8",
    )  # fmt: skip


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.communicate()


# ---- sources -------------------------------------------------------------------------------------
def test_every_source_says_whether_it_can_read_here_and_why_not():
    found = run("sources", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    document = json.loads(found.stdout)
    rows = {row["source"]: row for row in document["sources"]}
    assert list(rows) == ["cpu-threads", *OWN]
    assert rows["cpu-threads"]["can_read"]
    assert all((row["why_not"] is None) is row["can_read"] for row in rows.values())
    assert all(row["reads"] for row in rows.values())
    assert document["gpu"] is any(row["gpu"] and row["can_read"] for row in rows.values())
    foreign = {"ioreg": "darwin", "pdh": "win32"}
    assert all("only" in rows[name]["why_not"] for name, system in foreign.items() if sys.platform != system)


def test_the_table_has_a_line_a_source_and_a_verdict():
    found = run("sources", reader="Steady")
    assert (found.returncode, found.stderr) == (0, "")
    lines = found.stdout.splitlines()
    assert lines[0].split()[:2] == ["source", "here"]
    assert lines[-1].startswith("GPU time can be read here: ")
    assert any(line.startswith("steady ") and " yes " in line for line in lines)


def test_a_reader_that_breaks_is_told_and_closed():
    [_, steady, broken] = sources_here([Steady(), Broken()])
    assert steady.why_not is None
    assert "RuntimeError: it fell apart" in (broken.why_not or "")


def test_a_reader_that_does_not_exist_is_wrong_use():
    found = run("sources", reader="Missing")
    assert found.returncode == 2
    assert "must be module:Class" in found.stderr
    assert found.stdout == ""


# ---- watch ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--pid", "0"], "--pid: must be a process id"),
        (["--pid", "1", "--duty", "1.5"], "--duty: must be a share from 0 to 1; found '1.5'"),
        (["--pid", "1", "--duty", "nan"], "--duty: must be a share from 0 to 1; found 'nan'"),
        (["--pid", "1", "--measure", "tpu"], "--measure"),
        ([], "--pid"),
    ],
)
def test_wrong_words_are_one_line(arguments, line):
    found = run("watch", *arguments)
    assert found.returncode == 2
    assert line in found.stderr
    assert len(found.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("reader", "duty", "code", "last"),
    [
        # Far from the limits on both sides: on a busy machine a short window is not as long as it was meant to be.
        ("Steady", 0.3, 0, "check: within its duty, 0 of 3 strikes"),
        ("Greedy", 0.05, 1, "check: a strike just now, 1 of 3 strikes"),
        ("Blind", 0.9, 3, "pid {pid}: it is dark. Light it. Nothing was counted as zero."),
        ("Steady", None, 0, "pid {pid}"),
    ],
)
def test_a_gpu_job_beside_its_duty(sleeper, reader, duty, code, last):
    words = [] if duty is None else ["--duty", duty]
    found = run("watch", "--pid", sleeper, *words, "--count", 4, "--interval", 0.05, reader=reader)
    assert (found.returncode, found.stderr) == (code, "")
    assert found.stdout.splitlines()[-1].endswith(last.format(pid=sleeper))
    assert ("the agent would pause it" in found.stdout) is (reader in ("Greedy", "Blind") and code != 0)


def test_json_prints_documents_alone_and_strikes_beside_them(sleeper):
    found = run("watch", "--pid", sleeper, "--duty", 0.05, "--count", 4, "--interval", 0.05, "--json", reader="Greedy")
    assert found.returncode == 1
    lines = found.stdout.splitlines()
    assert len(lines) == 4
    assert all(judge("gpu-sample-1", line).valid for line in lines)
    assert "strike 1 of 3" in found.stderr


@pytest.mark.parametrize("command", ["sample", "watch"])
def test_the_gpu_is_measured_unless_something_else_is_asked_for(sleeper, command):
    found = run(command, "--pid", sleeper, "--count", 2, "--interval", 0.05, "--json", reader="Steady")
    assert [json.loads(line)["source"] for line in found.stdout.splitlines()] == ["steady"] * 2


def test_sample_without_a_gpu_is_unknown_and_names_the_stand_in(sleeper):
    found = run("sample", "--pid", sleeper, "--interval", 0.05, "--json", reader="Broken")
    assert found.returncode == 3
    assert json.loads(found.stdout)["share"] is None
    assert found.stderr == (
        "oarbank-agent-check: no GPU time can be read here. For a stand-in on the CPU: --measure cpu.\n"
    )


@pytest.mark.parametrize("command", ["sample", "watch"])
def test_the_cpu_is_measured_only_when_it_is_asked_for(sleeper, command):
    found = run(command, "--pid", sleeper, "--measure", "cpu", "--count", 2, "--interval", 0.05, "--json")
    assert [json.loads(line)["source"] for line in found.stdout.splitlines()] == ["cpu-threads"] * 2


def test_where_no_gpu_can_be_read_it_says_so_and_what_helps(sleeper, monkeypatch, capsys):
    from oarbank_agent_check import cli
    from oarbank_agent_check.commands import watch

    class Hindered(Steady):
        def hindrance(self):
            return Unknown("no driver is here. Install it.")

    monkeypatch.setattr(watch, "readers", lambda: [Hindered()])
    assert cli.main(["watch", "--pid", str(sleeper)]) == 3
    error = capsys.readouterr().err
    assert "no driver is here. Install it" in error
    assert "--measure cpu" in error


def test_a_process_that_ends_ends_the_watch():
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    watch = subprocess.Popen(
        [*PROGRAM, "watch", "--pid", str(process.pid), "--interval", "0.05"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=environment("Steady"),
    )  # fmt: skip
    assert watch.stdout is not None
    watch.stdout.readline()
    process.communicate()
    watch.communicate(timeout=100)
    assert watch.returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal as POSIX has it, and its Ctrl-C")
def test_on_a_terminal_one_region_is_redrawn_and_ctrl_c_leaves_it(sleeper):
    import pty  # there is none on Windows

    master, slave = pty.openpty()
    watch = subprocess.Popen(
        [*PROGRAM, "watch", "--pid", str(sleeper), "--duty", "0.9", "--interval", "0.05"], stdout=slave,
        stderr=subprocess.PIPE, env=environment("Steady"), start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while shown.count(b"check: ") < 4:
        shown += os.read(master, 4096)
    watch.send_signal(signal.SIGINT)
    _, error = watch.communicate(timeout=100)
    os.close(master)
    assert (watch.returncode, error) == (0, b"")
    assert shown.count(b"\x1b[1A\x1b[K") >= 4  # each of the lines is taken away before it is drawn again
    assert "▁".encode()[:2] in shown


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs Linux: /dev/full")
def test_a_full_disk_is_one_line(sleeper):
    with open("/dev/full", "w", encoding="utf-8") as full:
        found = subprocess.run(
            [*PROGRAM, "watch", "--pid", str(sleeper), "--interval", "0.05"], stdout=full, stderr=subprocess.PIPE,
            text=True, env=environment("Steady"), timeout=100, check=False,
        )  # fmt: skip
    assert found.returncode == 3
    assert len(found.stderr.splitlines()) == 1
