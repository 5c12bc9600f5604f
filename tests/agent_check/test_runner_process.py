"""Starting, nudging and ending a runner, with real processes: what it gets, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from oarbank_agent_check.jobs.runner_process import Ended, RunnerProcess, StartRefused

LONG_S = 20.0  # a deadline that only a broken test meets


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., RunnerProcess]:
    def one(code: str, *, env: dict[str, str] | None = None, argv: list[str] | None = None) -> RunnerProcess:
        command = argv or [sys.executable, "-I", "-c", code]
        return RunnerProcess(command, env or {"LC_ALL": "C"}, tmp_path, scratch=tmp_path / "scratch")

    return one


def until(true: Callable[[], object]) -> None:
    give_up = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.01)


def ended(runner: RunnerProcess) -> Ended:
    found = runner.wait(LONG_S)
    assert found is not None
    return found


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_runner_gets_the_environment_and_nothing_else(start: Callable[..., RunnerProcess]) -> None:
    env = {"LC_ALL": "C", "ONLY": "this", "WITH SPACE": "a=b"}

    with start("import json, os; print(json.dumps(dict(os.environ)))", env=env) as runner:
        assert ended(runner).code == 0

    assert json.loads(runner.stdout_tail()) == env


def test_runner_gets_its_own_session_no_stdin_and_no_open_files(start: Callable[..., RunnerProcess]) -> None:
    code = (
        "import json, os, sys\n"
        "files = [int(n) for n in os.listdir('/dev/fd')]\n"
        "still = [n for n in files if n > 2 and os.path.exists(f'/dev/fd/{n}')]\n"
        "print(json.dumps([os.getsid(0) == os.getpid(), sys.stdin.read(), still, os.getcwd()]))"
    )
    with start(code) as runner:
        assert ended(runner).code == 0

    assert json.loads(runner.stdout_tail())[:3] == [True, "", []]


def test_nudge_that_comes_before_the_handler_is_lost_and_harmless(
    start: Callable[..., RunnerProcess], tmp_path: Path
) -> None:
    code = (
        "import pathlib, signal, time\n"
        "assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN\n"
        "pathlib.Path('up').touch()\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)"
    )
    with start(code) as runner:
        until((tmp_path / "up").exists)
        runner.nudge()
        (tmp_path / "go").touch()

        assert ended(runner).code == 0


def test_nudge_reaches_a_handler(start: Callable[..., RunnerProcess], tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))\n"
        "pathlib.Path('up').touch()\n"
        "time.sleep(60)"
    )
    with start(code) as runner:
        until((tmp_path / "up").exists)
        runner.nudge()

        assert ended(runner).code == 7


def test_end_by_a_signal_is_a_negative_code(start: Callable[..., RunnerProcess]) -> None:
    with start("import os, signal; os.kill(os.getpid(), signal.SIGTERM)") as runner:
        assert ended(runner).code == -signal.SIGTERM


def test_program_that_is_not_there_is_refused_with_the_systems_reason(start: Callable[..., RunnerProcess]) -> None:
    with pytest.raises(StartRefused, match="No such file or directory"):
        start("", argv=["/nowhere/at/all"])


def test_file_that_may_not_be_executed_is_refused(start: Callable[..., RunnerProcess], tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")

    with pytest.raises(StartRefused, match="Permission denied"):
        start("", argv=[str(tmp_path / "plain")])


def test_output_without_end_costs_bounded_memory_and_blocks_nobody(start: Callable[..., RunnerProcess]) -> None:
    code = (
        "import sys\n"
        "for _ in range(64): sys.stdout.write('x' * (1 << 20)); sys.stderr.write('y' * 100000)\n"
        "sys.stdout.write('the end'); sys.stderr.write('its end')"
    )
    with start(code) as runner:
        assert ended(runner).code == 0

    assert len(runner.stdout_tail()) == 1 << 20
    assert runner.stdout_tail().endswith(b"the end")
    assert len(runner.stderr_tail()) == 2000
    assert runner.stderr_tail().endswith("its end")


FAMILY = """
import os, pathlib, signal, time
pathlib.Path("pids").touch()
def tell():
    with open("pids", "a") as file: file.write(f"{os.getpid()}\\n")
tell()
if os.fork() == 0:                      # a child that is deaf to everything that can be ignored
    signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGHUP, signal.SIG_IGN)
    tell(); time.sleep(120)
if os.fork() == 0:                      # a grandchild that left the session and lost its parent
    os.setsid()
    if os.fork() == 0:
        tell(); time.sleep(120)
    os._exit(0)
time.sleep(120)
"""


def family(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "pids").read_text().splitlines()]
    except OSError:
        return []


def test_closing_ends_children_and_those_that_detached_themselves(
    start: Callable[..., RunnerProcess], tmp_path: Path
) -> None:
    with start(FAMILY) as runner:
        until(lambda: len(family(tmp_path)) == 3)
        if runner.follows_orphans:
            until(lambda: set(runner.adopted()) & set(family(tmp_path)))

    pids = family(tmp_path)
    assert [pid for pid in pids if alive(pid)] == ([] if runner.follows_orphans else pids[2:])


def test_an_exception_in_the_block_ends_the_runner(start: Callable[..., RunnerProcess]) -> None:
    with pytest.raises(KeyboardInterrupt), start("import time; time.sleep(120)") as runner:
        raise KeyboardInterrupt

    assert not alive(runner.pid)


def test_closing_twice_does_nothing(start: Callable[..., RunnerProcess]) -> None:
    runner = start("pass")
    runner.close()
    runner.close()


STARTER = """
import pathlib, sys, time
from oarbank_agent_check.jobs.runner_process import RunnerProcess
folder = pathlib.Path(sys.argv[1])
scratch = folder / "scratch"; scratch.mkdir()
with RunnerProcess([sys.executable, "-I", "-c", sys.argv[2]], {"LC_ALL": "C"}, folder, scratch=scratch):
    time.sleep(120)
"""


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_is_left_however_its_starter_is_ended(number: str, tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path), FAMILY], stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until(lambda: len(family(tmp_path)) == 3)
        os.kill(starter.pid, getattr(signal, number))
        starter.wait(LONG_S)
        pids = family(tmp_path) if sys.platform.startswith("linux") else family(tmp_path)[:2]
        until(lambda: not [pid for pid in pids if alive(pid)])
        if number != "SIGINT":  # then the starter's own last block removes it, which this small one does not have
            until(lambda: not (tmp_path / "scratch").exists())
    finally:
        starter.kill()
        starter.wait()
