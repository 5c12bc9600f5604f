"""Judge a task that was killed in the middle and run again. Pure."""

from __future__ import annotations

from oarbank_agent_check.jobs.module import Module
from oarbank_conformkit.checks import Check, check
from oarbank_conformkit.evidence import RetrySeen
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.judge.run import compared


def judge_retry(module: Module, golden: Golden, first: str | None, seen: RetrySeen) -> Check:
    """Return the check of the second attempt; `first` is the digest of the golden's first run, None for none."""
    name = f"golden {golden.name}: same digest after it was killed and run again"
    if seen.refused is not None:
        return check("runner", "retry.result", name, "unknown", f"could not be started: {seen.refused}")
    if seen.killed_s is None or seen.run is None:
        why = "it ended before it could be killed. Make the task last half a second or more"
        return check("runner", "retry.result", name, "unknown", why)
    status, detail = compared(module, first, seen.run)
    return check("runner", "retry.result", name, status, f"killed after {seen.killed_s:.1f} s; {detail}")
