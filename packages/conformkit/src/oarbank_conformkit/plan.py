"""What will be checked, in which order: manifest, fixtures and host in, an ordered plan out.

Pure. Everything that can be decided without starting the runner is decided here, as a check; the rest becomes a step
for a suite. One runner runs at a time, goldens before duty specs, because two governed runners would share the
machine. A plan that would start nothing although it was asked to is an error: no runner judged must never look green.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import MANIFEST, Module, Stage
from oarbank_agent_check.jobs.specs import Task
from oarbank_conformkit.checks import Check, check
from oarbank_conformkit.faults import found
from oarbank_conformkit.fixtures import DutySpec, Fixtures
from oarbank_conformkit.goldens import Golden


@dataclass(frozen=True, slots=True)
class DoctorStep:
    """Ask the runner's doctor."""

    primary: str = "doctor.exit"
    title: str = "doctor"


@dataclass(frozen=True, slots=True)
class GoldenStep:
    """Run a golden, twice where its results compare exactly, and once more to be stopped."""

    task: Task
    golden: Golden
    repeat: bool
    stop: bool
    primary: str = "golden.exit"

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"golden {self.golden.name}"


@dataclass(frozen=True, slots=True)
class DutyStep:
    """Run a duty spec's task and measure."""

    task: Task
    spec: DutySpec
    primary: str = "duty.runs"

    @property
    def title(self) -> str:
        """Name of the step in a report."""
        return f"duty spec {self.spec.name}"


Step = DoctorStep | GoldenStep | DutyStep
Item = Check | Step


def plan(
    module: Module, goldens: tuple[Golden, ...], fixtures: Fixtures | None, host: Host, *, runner: bool = True
) -> tuple[Item, ...]:
    """Return the checks already decided and the steps to run, in order.

    Without `runner` every step becomes a skip. Raises `UsageError` when the plan is empty: this host is none of the
    module's platforms.
    """
    if runner and host.platform not in module.platforms:
        listed = ", ".join(module.platforms)
        raise UsageError(
            f"{MANIFEST}: /requires/platforms: must list this host, {host.platform}, to run anything; found {listed}. "
            "Run the kit on one of those, or give --no-runner."
        )
    items = [DoctorStep(), *_goldens(module, goldens, host), *_duty_specs(module, fixtures, host)]
    return tuple(items if runner else (_not_run(item) for item in items))


def _not_run(item: Item) -> Item:
    if isinstance(item, Check):
        return item
    return check("runner", item.primary, f"{item.title}: is run", "skip", "not asked for: --no-runner")


# ---- goldens ------------------------------------------------------------------------------------------


def _goldens(module: Module, goldens: tuple[Golden, ...], host: Host) -> Iterator[Item]:
    """The first golden that this host can run, as an agent would be certified by one."""
    if not goldens:
        return
    for golden in goldens:
        stage = module.stage(golden.stage)
        if golden.runs_on(host.platform) and stage is not None and stage.determinism != "none":
            task = Task(golden.name, stage, golden.payload, golden.key_inputs, golden.datasets, golden.mounts)
            yield GoldenStep(task, golden, repeat=stage.determinism == "exact", stop=module.cancellable)
            return
    reasons = "; ".join(_why_not(module, golden, host) for golden in goldens)
    yield check("runner", "golden.exit", "golden: one runs on this host", "unknown", f"none can be run: {reasons}")


def _why_not(module: Module, golden: Golden, host: Host) -> str:
    stage = module.stage(golden.stage)
    if stage is None:
        return f"{golden.name} names the stage {found(golden.stage)}, which the manifest does not have"
    if stage.determinism == "none":
        return f"{golden.name} is of stage {stage.name}, whose results are never compared"
    return f"{golden.name} is for {', '.join(golden.platforms or ())}, and this host is {host.platform}"


# ---- duty specs ---------------------------------------------------------------------------------------


def _duty_specs(module: Module, fixtures: Fixtures | None, host: Host) -> Iterator[Item]:
    if fixtures is None:
        return
    for spec in fixtures.duty_specs:
        stage = module.stage(spec.stage)
        fault = _spec_fault(module, stage, spec)
        name = f"duty spec {spec.name}"
        if fault is not None:
            yield check("runner", "fixture.entry", f"duty spec #{spec.index}: fixture", "fail", f"{name}: {fault}")
        elif (reason := _spec_skip(module, stage, spec, fixtures, host)) is not None:
            yield check("runner", "duty.runs", f"{name}: runs until it is measured", "skip", reason)
        elif stage is not None:
            task = Task(spec.name, stage, spec.payload, spec.payload, spec.datasets, spec.mounts)
            yield DutyStep(task, spec)


def _spec_fault(module: Module, stage: Stage | None, spec: DutySpec) -> str | None:
    """Why a duty spec could never prove anything with this manifest."""
    at = f"/duty_specs/{spec.index}/stage"
    if stage is None:
        if all(one.name is None for one in module.stages):
            return f"{at}: this manifest has no stages: leave stage out; found {found(spec.stage)}"
        names = ", ".join(str(one.name) for one in module.stages)
        return f"{at}: must be a stage of the manifest ({names}); found {found(spec.stage)}"
    if stage.after:
        return f"{at}: must be a stage that stands alone; found {stage.name}, which runs after {', '.join(stage.after)}"
    there = ", ".join(sorted(module.capabilities)) or "no capabilities at all"
    for capability, why in (
        ("cooperative_throttle", "or the runner never gets a duty"),
        ("progress_events", "or the runner cannot report"),
    ):
        if capability not in module.capabilities:
            return f"{MANIFEST}: /runner/capabilities: must hold {capability} for a duty spec, {why}; found {there}"
    if module.gpu_use == "none":
        return f'{MANIFEST}: /runner/gpu/use: must be shared or exclusive for a duty spec; found "none"'
    return None


def _spec_skip(module: Module, stage: Stage | None, spec: DutySpec, fixtures: Fixtures, host: Host) -> str | None:
    """Why a sound duty spec does not apply on this host."""
    missing = [dataset for dataset in spec.datasets if dataset not in fixtures.datasets]
    if missing:
        return f"dataset {missing[0]} is not among the fixtures' datasets"
    if stage is not None and "containers" in stage.pools:
        return f"stage {stage.name} needs the pool containers, which the kit does not offer"
    apis = set(module.gpu_apis_any)
    if apis and host.gpu_apis is not None and not apis & host.gpu_apis:
        return f"this host offers none of the GPU interfaces {', '.join(sorted(apis))}"
    return None
