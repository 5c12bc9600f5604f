"""Run `doctor --json` as an agent does: in the data directory, without a workdir."""

from __future__ import annotations

import time

from oarbank_agent_check.jobs.environment import doctor_environment
from oarbank_agent_check.jobs.module import argv
from oarbank_agent_check.jobs.runner_process import StartRefused
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.judge.doctor import judge_doctor
from oarbank_conformkit.steps import DoctorStep
from oarbank_conformkit.suites.bench import Bench, finished
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import Scratch


def run(bench: Bench, step: DoctorStep) -> Outcome:
    """Ask it."""
    began = time.monotonic()
    seen = _see(bench, began)
    absent = None if seen.refused is None else "the runner could not be started"
    return Outcome(timed(judge_doctor(seen, bench.host.platform), time.monotonic() - began), absent)


def _see(bench: Bench, began: float) -> RunSeen:
    with Scratch(bench.data) as scratch:
        grants = scratch.root / "grants"
        scratch.grant(grants, bench.fixtures)
        env = doctor_environment(bench.module, bench.host, data=str(scratch.data), grants=str(grants))
        command = [*argv(bench.module.exec, str(bench.bundle), bench.host.python), "doctor", "--json"]
        try:
            with bench.started(command, env, scratch.data, scratch) as runner:
                return finished(scratch, runner, began, bench.limits.doctor_s)
        except StartRefused as exc:
            return RunSeen(refused=str(exc))
