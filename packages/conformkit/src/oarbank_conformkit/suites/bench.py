"""What every suite works with: the module, the host, and one run of the runner laid out as an agent would.

Decides how a run is started and how it is watched to its end; never what it means. Several runs may be under way at
once, each in a thread of its own; `end` ends them all.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from oarbank_agent_check.jobs.environment import LOCALES, run_environment
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, run_command
from oarbank_agent_check.jobs.runner_process import RunnerProcess
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.fixtures import Fixtures
from oarbank_conformkit.limits import USUAL as USUAL_LIMITS
from oarbank_conformkit.limits import Limits
from oarbank_conformkit.result_schema import ResultSchema
from oarbank_conformkit.workdir import BadFixture, Scratch
from oarbank_sdk.canonical import CanonicalError

POLL_S = 0.005
"""How often files that a runner writes are looked for; nothing announces them."""

Live = Callable[[str], None]
"""Told, a few times a second, what is going on."""

_attempts = count(1)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a run takes place, as far as it is not as usual."""

    locale: str = LOCALES[0]
    name: str = "oarbank-conform"  # how the name of its directory begins
    copy: bool = False  # it runs a copy of the bundle that lies beside its workdir
    data: Path | None = None  # the data directory of another run
    one_cpu: bool = False  # it may use one processor alone, where the system can be told


USUAL = Setting()


@dataclass(slots=True)
class FirstRun:
    """What the golden's first run came to, for those that compare with it."""

    digest: str | None = None
    took_s: float = 0.0
    work_s: float = 0.0  # from its first phase to its end


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything a suite needs beside its step."""

    module: Module
    host: Host
    bundle: Path  # absolute
    fixtures: Fixtures | None
    live: Live = lambda text: None
    limits: Limits = USUAL_LIMITS
    data: Path | None = None  # what every fresh data directory holds
    secrets: Mapping[str | None, Mapping[str, str]] = field(default_factory=dict)  # by stage
    schema: ResultSchema | None = None  # of the results, where the manifest names one that is there
    first: FirstRun = field(default_factory=FirstRun)
    _running: set[RunnerProcess] = field(default_factory=set)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def run(self, task: Task, setting: Setting = USUAL) -> Generator[tuple[Scratch, RunnerProcess]]:
        """Start a task in fresh directories; everything is gone when the block is left.

        Raises `StartRefused`, `BadFixture` and `HostFault`.
        """
        with Scratch(self.data, setting.name) as scratch:
            try:
                spec = envelope(self.module, task, self.host.platform)
            except CanonicalError as exc:
                raise BadFixture(f"{task.name}: {exc}") from None
            secrets = self.secrets.get(task.stage.name, {})
            scratch.lay_out(spec, task, self.fixtures, secrets)
            bundle = scratch.copy_bundle(self.bundle) if setting.copy else self.bundle
            env = run_environment(
                self.module,
                self.host,
                workdir=str(scratch.workdir),
                data=str(scratch.data if setting.data is None else setting.data),
                attempt=f"conform-{next(_attempts)}",
                locale=setting.locale,
            )
            if secrets:
                env["OARBANK_SECRETS_FILE"] = str(scratch.secrets_file)
            command = run_command(self.module, str(bundle), self.host.python, str(scratch.workdir))
            with self.started(command, env, scratch.workdir, scratch, one_cpu=setting.one_cpu) as runner:
                yield scratch, runner

    @contextmanager
    def started(
        self, command: list[str], env: dict[str, str], cwd: Path, scratch: Scratch, *, one_cpu: bool = False
    ) -> Generator[RunnerProcess]:
        """Start a command of the module; raises as `run`, and `HostFault` once all is to end."""
        if self._over.is_set():
            raise HostFault("start: nothing more is started; the kit ends.")
        with _affinity(one_cpu), RunnerProcess(command, env, cwd, scratch=scratch.root) as runner:
            self._running.add(runner)
            if self._over.is_set():  # `end` may have come between
                runner.signal_all(signal.SIGKILL)
            try:
                yield runner
            finally:
                self._running.discard(runner)

    def end(self) -> None:
        """Have every run end now, whoever waits for it; none is started after this."""
        self._over.set()
        for runner in list(self._running):
            runner.signal_all(signal.SIGKILL)


@contextmanager
def _affinity(one: bool) -> Generator[None]:
    """Keep what this thread starts to one processor; nothing where the system cannot be told."""
    if sys.platform == "linux" and one:
        usual = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(usual)})
        try:
            yield
        finally:
            os.sched_setaffinity(0, usual)
    else:
        yield


def can_pin() -> bool:
    """Say whether a run can be kept to one processor here."""
    return sys.platform == "linux"


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
