"""Who may use the GPU beside a protected program, and under which conditions: free, at a duty, or not at all.

Decides from what a job declares, the owner's `gpu_jobs`, the programs that use the GPU, and the bans. It knows no
history and gives no order. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from oarbank_agent_check.budget import Beside
from oarbank_agent_check.inputs import GpuJobs, Job, Protected

BLOCKED = "GPU_BLOCKED"
"""The reason's first word for work that waits for the GPU."""

GPU_JOBS: tuple[GpuJobs, ...] = ("never", "when_no_gpu_protected", "certified", "always")
"""The owner's rules, strictest first: where several say one, the first of these holds (`strictest`)."""

LEARNING_S = 25.0
"""About so long a program's own speed takes to learn: 20 s of its counter, the settling before, a sample behind."""

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
    without = next((program for program in beside if program.left(job.module) is None), None)
    return AT_A_DUTY if without is None else Standing("wait", f"{BLOCKED}: {_no_level(job.module, without.told)}")


def _no_level(module: str, program: Protected) -> str:
    """Say why no level counts for a module beside a program, and how long that takes or what to do."""
    name = program.program or "the protected program"
    if program.speed == "learning":
        return f"{name}'s own speed is being learnt, which takes about {LEARNING_S:.0f} s while its counter moves"
    if program.speed == "unknown":
        return f"{name}'s own speed cannot be learnt, its counter says nothing. Look at its progress file or command."
    if program.level is None and not program.levels:
        return f"no level is given beside {name}. Certify one with `oarbank-agent-check sweep`, or give a number."
    return (
        f"no level is given for module {module} beside {name}, only for others. Certify one for it, or give a number."
    )
