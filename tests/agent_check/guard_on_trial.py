"""A machine that is guarded, from outside: its configuration, its journal, its fake GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarbank_agent_check import core, journal
from oarbank_agent_check.sources.gpu import VARIABLE
from tests.agent_check.jobs_on_trial import HEARS_INTERRUPTS, PROGRAM
from tests.agent_check.wait import eventually
from tests.fakegpu import reader, runners
from tests.fakegpu.running import ROOT, FakeGpu

FOREVER = "{ units = 1000000, unit_s = 0.002 }"
PROTECT = """
[[protect]]
name = "game"
arguments = "{match}"
target = 0.4
progress.file = "frames"
level = {level}
"""
JOB = """
[[job]]
name = "{name}"
module = "{module}"
payload = {payload}
"""


@dataclass
class Machine:
    """One folder with a configuration, a state and results. Time runs `factor` times as fast for the agent."""

    folder: Path
    gpu: FakeGpu
    factor: float = 15
    more: list[str] = field(default_factory=list)

    def module(self, name: str = "module", body: str | None = None, **changes: Any) -> str:
        """A module whose runner uses the fake GPU; `body` is what it does otherwise."""
        source = runners.HONEST
        if body is not None:
            head, end = source.split('if __name__ == "__main__":')
            source = f'{head}{body}\n\nif __name__ == "__main__":{end}'
        runners.build(self.folder / name, self.gpu.path, source, **changes)
        return name

    def configure(self, *parts: str, rule: str = "certified") -> None:
        (self.folder / "guard.toml").write_text(f'gpu_jobs = "{rule}"\n' + "".join(parts))

    def protect(self, level: float | str = 0.3) -> str:
        """`level` as the configuration spells it."""
        return PROTECT.format(match=self.game, level=level)

    def job(self, name: str, module: str = "module", payload: str = FOREVER) -> str:
        return JOB.format(name=name, module=module, payload=payload)

    @property
    def game(self) -> str:
        """What a command line holds that belongs to the protected program."""
        return f"tests.fakegpu.program {self.gpu.path}"

    @contextmanager
    def guarded(self) -> Iterator[subprocess.Popen[str]]:
        """The guard at work, killed at the end whatever happened."""
        with (self.folder / "said").open("a") as said:
            process = subprocess.Popen(
                [sys.executable, "-c", HEARS_INTERRUPTS, PROGRAM, "guard", *self._words()],
                cwd=self.folder, env=self._env(), stdout=subprocess.PIPE, stderr=said, text=True,
                start_new_session=True,
            )  # fmt: skip
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def run(self) -> subprocess.CompletedProcess[str]:
        """Guard to the end."""
        return subprocess.run(
            [PROGRAM, "guard", *self._words()],
            cwd=self.folder, env=self._env(), capture_output=True, text=True, timeout=110, check=False,
        )  # fmt: skip

    def said(self) -> str:
        return (self.folder / "said").read_text()

    def journal(self, *kinds: str) -> list[dict[str, Any]]:
        try:
            lines = (self.folder / "state" / "journal.ndjson").read_text().splitlines(keepends=True)
        except OSError:
            return []
        entries = [json.loads(line) for line in lines if line.endswith("\n")]
        return [entry for entry in entries if not kinds or entry["kind"] in kinds]

    def duties(self, name: str) -> list[float | None]:
        return [one["duty"] for one in self.journal("duty") if one["job"].startswith(name)]

    def sees(self, *kinds: str, times: int = 1) -> None:
        """Wait until the journal holds so many entries of these kinds."""
        eventually(lambda: len(self.journal(*kinds)) >= times, f"{times} of {', '.join(kinds)}")

    def replays(self) -> None:
        """The journal's inputs, given to the law again, lead to the journal's orders."""
        lines = (self.folder / "state" / "journal.ndjson").read_bytes().splitlines()
        state, orders = core.State(), []
        for told in journal.read(lines):
            state, given = core.step(state, [told], told.t)
            orders += map(journal.line_of, given)
        written = [line.decode() for line in lines if json.loads(line)["kind"] in journal.ACTIONS]
        assert orders == written

    def _words(self) -> list[str]:
        return ["guard.toml", "--state", "state", "--time-factor", str(self.factor), *self.more]

    def _env(self) -> dict[str, str]:
        paths = {VARIABLE: reader.SPEC, reader.VARIABLE: self.gpu.path, "PYTHONPATH": str(ROOT)}
        return {**os.environ, **paths}


def ends(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> int:
    """Send a signal, and give the exit code."""
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode
