"""What every suite works with: the module, the host, and one run of the runner laid out as an agent would.

Decides how a run is started and how it is watched to its end; never what it means.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from oarbank_agent_check.jobs.environment import LOCALES, run_environment
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, run_command
from oarbank_agent_check.jobs.runner_process import RunnerProcess
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.workdir import BadFixture, Scratch
from oarbank_sdk.canonical import CanonicalError

POLL_S = 0.005
"""How often files that a runner writes are looked for; nothing announces them."""

Live = Callable[[str], None]
"""Told, a few times a second, what is going on."""

_attempts = count(1)


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything a suite needs beside its step."""

    module: Module
    host: Host
    bundle: Path  # absolute
    fixtures: Fixtures | None
    live: Live = lambda text: None

    @contextmanager
    def run(self, task: Task, locale: str = LOCALES[0]) -> Generator[tuple[Scratch, RunnerProcess]]:
        """Start a task in fresh directories; everything is gone when the block is left.

        Raises `StartRefused`, `BadFixture` and `HostFault`.
        """
        with Scratch() as scratch:
            try:
                spec = envelope(self.module, task, self.host.platform)
            except CanonicalError as exc:
                raise BadFixture(f"{task.name}: {exc}") from None
            scratch.lay_out(spec, task, self.fixtures)
            env = run_environment(
                self.module,
                self.host,
                workdir=str(scratch.workdir),
                data=str(scratch.data),
                attempt=f"conform-{next(_attempts)}",
                locale=locale,
            )
            command = run_command(self.module, str(self.bundle), self.host.python, str(scratch.workdir))
            with RunnerProcess(command, env, scratch.workdir, scratch=scratch.root) as runner:
                yield scratch, runner


def first_phase(scratch: Scratch, runner: RunnerProcess, limit_s: float) -> bool:
    """Wait for the runner's first phase; False when it ended or the limit passed without one."""
    give_up = time.monotonic() + limit_s
    while not scratch.has_phase():
        if runner.wait(POLL_S) is not None or time.monotonic() >= give_up:
            return scratch.has_phase()
    return True


def finished(scratch: Scratch, runner: RunnerProcess, began: float, limit_s: float) -> RunSeen:
    """Wait for the end of a run, end what is left of it, and return what it left."""
    ended = runner.wait(limit_s)
    runner.close()
    result = scratch.result()
    return RunSeen(
        exit=None if ended is None else ended.code,
        took_s=(time.monotonic() if ended is None else ended.at) - began,
        limit_s=limit_s,
        result=result,
        failure=scratch.failure(),
        phase=scratch.has_phase(),
        stdout=runner.stdout_tail(),
        stderr=runner.stderr_tail(),
        missing_files=scratch.missing_files(result),
    )
