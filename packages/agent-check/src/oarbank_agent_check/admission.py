"""Who may use the GPU beside a protected program, and under which conditions: free, at a duty, or not at all.

Decides from what a job declares, the owner's `gpu_jobs`, the programs that use the GPU, and the bans. It knows no
history and gives no order. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from oarbank_agent_check.budget import Beside
from oarbank_agent_check.inputs import GpuJobs, Job

BLOCKED = "GPU_BLOCKED"
"""The reason's first word for work that waits for the GPU."""

GPU_JOBS: tuple[GpuJobs, ...] = ("never", "when_no_gpu_protected", "certified", "always")
"""The owner's rules, strictest first: where several say one, the first of these holds (`strictest`)."""

Terms = Literal["free", "duty", "wait", "banned"]


@dataclass(frozen=True, slots=True)
class Standing:
    """On which terms a job may use the GPU, and why it waits where it does. A banned one waits until the ban ends."""

    terms: Terms
    reason: str = ""


FREE, AT_A_DUTY = Standing("free"), Standing("duty")


def strictest(rules: Sequence[GpuJobs]) -> GpuJobs:
    """Give the rule that holds where the owner and others each gave one; ValueError where nobody did."""
    return min(rules, key=GPU_JOBS.index)


def uses_gpu(job: Job) -> bool:
    """Say whether a job is GPU work; exclusive use is judged as shared use is."""
    return job.gpu_use != "none"


def shares_budget(job: Job) -> bool:
    """Say whether a job is one of those among which a budget is divided."""
    return job.cooperative and uses_gpu(job)


def standing(job: Job, rule: GpuJobs, beside: Sequence[Beside], banned: Collection[str]) -> Standing:
    """Say on which terms a job may use the GPU while the programs `beside` do; how much of it is the budget's word."""
    if not uses_gpu(job):
        return FREE
    if rule == "never":
        return Standing("wait", f"{BLOCKED}: gpu_jobs is never")
    if rule == "always" or not beside:
        return FREE
    if rule == "when_no_gpu_protected":
        return Standing("wait", f"{BLOCKED}: a protected program uses the GPU")
    if not job.cooperative:
        return Standing("wait", f"{BLOCKED}: only jobs with cooperative_throttle may run beside a protected program")
    if job.module in banned:
        return Standing("banned", f"{BLOCKED}: module {job.module} is banned, it took more than its duty")
    if any(program.left(job.module) is None for program in beside):
        why = "none was certified, or its own speed is being learnt"
        return Standing("wait", f"{BLOCKED}: no level holds for module {job.module} beside a program: {why}")
    return AT_A_DUTY
