"""Run `doctor --json` as an agent does: in the data directory, without a workdir."""

from __future__ import annotations

import time
from collections.abc import Generator

from oarbank_agent_check.jobs.environment import doctor_environment
from oarbank_agent_check.jobs.module import argv
from oarbank_agent_check.jobs.runner_process import RunnerProcess, StartRefused
from oarbank_conformkit.checks import Check, timed
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.judge.doctor import LIMIT_S, judge_doctor
from oarbank_conformkit.plan import DoctorStep
from oarbank_conformkit.suites.bench import Bench, finished
from oarbank_conformkit.workdir import Scratch


def run(bench: Bench, step: DoctorStep) -> Generator[Check, None, str | None]:
    """Give the doctor's checks; at the end, why no other step can run, or None."""
    bench.live(step.title)
    began = time.monotonic()
    seen = _see(bench, began)
    yield from timed(judge_doctor(seen, bench.host.platform), time.monotonic() - began)
    return None if seen.refused is None else "the runner could not be started"


def _see(bench: Bench, began: float) -> RunSeen:
    with Scratch() as scratch:
        grants = scratch.root / "grants"
        scratch.grant(grants, bench.fixtures)
        env = doctor_environment(bench.module, bench.host, data=str(scratch.data), grants=str(grants))
        command = [*argv(bench.module.exec, str(bench.bundle), bench.host.python), "doctor", "--json"]
        try:
            with RunnerProcess(command, env, scratch.data, scratch=scratch.root) as runner:
                return finished(scratch, runner, began, LIMIT_S)
        except StartRefused as exc:
            return RunSeen(refused=str(exc))
