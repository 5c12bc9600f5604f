"""Run the task of a runner spec once, to its end."""

from __future__ import annotations

import time

from oarbank_agent_check.jobs.runner_process import StartRefused
from oarbank_conformkit.checks import check, timed
from oarbank_conformkit.evidence import RunSeen
from oarbank_conformkit.judge.spec import judge_spec
from oarbank_conformkit.steps import SpecStep
from oarbank_conformkit.suites.bench import Bench, finished
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import BadFixture


def run(bench: Bench, step: SpecStep) -> Outcome:
    """Run it and compare with what it expects."""
    began = time.monotonic()
    try:
        with bench.run(step.task) as (scratch, runner):
            seen = finished(scratch, runner, began, step.task.stage.timeout_s)
    except StartRefused as exc:
        seen = RunSeen(refused=str(exc))
    except BadFixture as exc:
        told = check("runner", "fixture.entry", f"runner spec #{step.spec.index}: fixture", "fail", str(exc))
        return Outcome([told])
    return Outcome(timed(judge_spec(bench.module, step.spec, seen, bench.schema), time.monotonic() - began))
