"""Modules to run, and the program `oarbank-agent-check run` from outside."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from oarbank_agent_check import core, journal
from tests.agent_check.wait import eventually
from tests.conformkit import bundles

PROGRAM = str(Path(sys.executable).with_name("oarbank-agent-check"))
LLMSERVE = Path(__file__).parents[2] / "packages" / "llmserve"
LONG = json.dumps({"units": 100_000, "unit_s": 0.005})
PROMPT = {"prompts": ["tell me of rivers"], "max_tokens": 150, "backend": "stub"}

UNGOVERNED = """\
    def unit(self, unit_s):
        burn(unit_s)
"""
DETACHED = """\
    def phase(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                with open(os.environ["PIDS"] + ".new", "w") as file:
                    file.write(f"{os.getppid()} {os.getpid()}")
                os.rename(os.environ["PIDS"] + ".new", os.environ["PIDS"])
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(600)
            os._exit(0)
        os.wait()
        super().phase()
"""


def ungoverned_llmserve(folder: Path) -> Path:
    """A copy of the module whose units hold nothing back."""
    shutil.copytree(LLMSERVE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    runner = folder / "llmserve_runner.py"
    freed = (
        "import contextlib\nimport oarbank_sdk.duty\n"
        "oarbank_sdk.duty.Duty.unit = lambda self, label=None: contextlib.nullcontext(self)\n"
    )
    text = runner.read_text()
    assert "\nfrom oarbank_llmserve.runner import" in text
    runner.write_text(
        text.replace("\nfrom oarbank_llmserve.runner import", f"\n{freed}from oarbank_llmserve.runner import")
    )
    return folder


@dataclass
class Trial:
    """Runs of one state, in one folder."""

    folder: Path
    env: dict[str, str] | None = None

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def words(self, module: Path, *more: object, payload: str = LONG, duty: str = "0.3") -> list[str]:
        asked = [] if "--level" in more else ["--duty", duty]
        measure = [] if "--measure" in more else ["--measure", "cpu"]
        return [str(module), "--payload", payload, *asked, *measure, "--state", str(self.state), *map(str, more)]

    def run(self, module: Path, *more: object, **named: str) -> subprocess.CompletedProcess[str]:
        """Run a job to its end."""
        return self.run_words(*self.words(module, *more, **named))

    def run_words(self, *words: str, stdout: int | IO[str] = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "run", *words],
            cwd=self.folder, env=self._env(), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=110,
            check=False,
        )  # fmt: skip

    @contextmanager
    def running(self, module: Path, *more: object, **named: str) -> Iterator[subprocess.Popen[str]]:
        """A job in the middle of its work, killed at the end whatever happened."""
        process = subprocess.Popen(
            [sys.executable, "-c", HEARS_INTERRUPTS, PROGRAM, "run", *self.words(module, *more, **named)],
            cwd=self.folder, env=self._env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()

    def journal(self, kind: str | None = None) -> list[dict[str, Any]]:
        try:
            lines = (self.state / "journal.ndjson").read_text().splitlines(keepends=True)
        except OSError:
            return []
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [entry for entry in entries if kind in (None, entry["kind"])]

    def replays(self) -> None:
        """The journal's inputs, given to the law again, lead to the journal's orders."""
        lines = (self.state / "journal.ndjson").read_bytes().splitlines()
        state, orders = core.State(), []
        for told in journal.read(lines):
            state, given = core.step(state, [told], told.t)
            orders += map(journal.line_of, given)
        assert orders == [line.decode() for line in lines if json.loads(line)["kind"] in journal.ACTIONS]

    def works(self) -> None:
        """Wait until the job is being measured."""
        eventually(lambda: bool(self.journal("sample")), "a sample")

    def _env(self) -> dict[str, str]:
        return {**os.environ, **(self.env or {})}


HEARS_INTERRUPTS = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
os.execv(sys.argv[1], sys.argv[1:])
"""


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(process: subprocess.Popen[str]) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


def end(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> tuple[int, str, str]:
    """Send a signal, and give exit code, stdout and stderr."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def bundle(folder: Path, body: str = "", **changes: Any) -> Path:
    """The stand-in module, with a runner that does wrong what `body` says."""
    return bundles.build(folder / "module", bundles.runner(body), **changes)
