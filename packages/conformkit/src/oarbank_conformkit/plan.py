"""What will be checked, in which order: manifest, fixtures and host in, an ordered plan out.

Pure. Everything that can be decided without starting the runner is decided here, as a check; the rest becomes a step
for a suite. Steps of one wave may run side by side; a step without a wave measures, so nothing else runs beside it,
and two governed runners would share the machine. A plan that would start nothing although it was asked to is an error:
no runner judged must never look green.
"""

from __future__ import annotations

from collections.abc import Iterator

from oarbank_agent_check.jobs.coordinator import Coordinator
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import MANIFEST, Module, Stage
from oarbank_agent_check.jobs.specs import Task
from oarbank_conformkit.checks import Check, check
from oarbank_conformkit.faults import found
from oarbank_conformkit.fixtures import DutySpec, Fixtures, RunnerSpec
from oarbank_conformkit.goldens import Golden
from oarbank_conformkit.steps import (
    DoctorStep,
    DutyStep,
    GoldenStep,
    PauseStep,
    ProtocolStep,
    RepeatStep,
    RetryStep,
    SpecStep,
    Step,
    StopStep,
    TerminateStep,
    ThrottleStep,
)

Item = Check | Step


def plan(
    module: Module,
    goldens: tuple[Golden, ...],
    fixtures: Fixtures | None,
    host: Host,
    *,
    coordinator: Coordinator | None = None,
    runner: bool = True,
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
    duties = list(_duty_specs(module, fixtures, host))
    items = [
        DoctorStep(),
        *_protocol(coordinator, fixtures, module, goldens),
        *_goldens(module, goldens, host, duties),
        *duties,
    ]
    specs = list(_runner_specs(module, fixtures))
    if specs:
        at = next((i for i, item in enumerate(items) if not isinstance(item, Check) and item.wave is None), len(items))
        items[at:at] = specs
    return tuple(items if runner else (_not_run(item) for item in items))


def _not_run(item: Item) -> Item:
    if isinstance(item, Check):
        return item
    return check(item.suite, item.primary, f"{item.title}: is run", "skip", "not asked for: --no-runner")


def _protocol(
    coordinator: Coordinator | None, fixtures: Fixtures | None, module: Module, goldens: tuple[Golden, ...]
) -> Iterator[Item]:
    if coordinator is None:
        why = f"{MANIFEST} has no [coordinator], so nobody speaks the module protocol"
        yield check("protocol", "protocol.starts", "coordinator: answers", "skip", why)
        return
    known = set(coordinator.operations)
    for op in () if fixtures is None else fixtures.ops:
        if op.verb not in known:
            listed = ", ".join(sorted(known)) or "none"
            fault = f"/ops/{op.index}/verb: must be an operation of the manifest ({listed}); found {found(op.verb)}"
            yield check("protocol", "fixture.entry", f"op #{op.index}: fixture", "fail", fault)
    yield ProtocolStep(coordinator, goldens, module.platforms)


# ---- goldens ------------------------------------------------------------------------------------------


def _goldens(module: Module, goldens: tuple[Golden, ...], host: Host, duties: list[Item]) -> Iterator[Item]:
    """The first golden that this host can run, as an agent would be certified by one."""
    if not goldens:
        return
    for golden in goldens:
        stage = module.stage(golden.stage)
        if golden.runs_on(host.platform) and stage is not None and stage.determinism != "none":
            task = Task(golden.name, stage, golden.payload, golden.key_inputs, golden.datasets, golden.mounts)
            yield from _of_golden(module, golden, task, host, duties)
            return
    reasons = "; ".join(_why_not(module, golden, host) for golden in goldens)
    yield check("runner", "golden.exit", "golden: one runs on this host", "unknown", f"none can be run: {reasons}")


def _of_golden(module: Module, golden: Golden, task: Task, host: Host, duties: list[Item]) -> Iterator[Item]:
    exact = task.stage.determinism == "exact"
    yield GoldenStep(task, golden)
    yield RepeatStep(task, golden, exact)
    if exact:
        yield RetryStep(task, golden)
    if module.cancellable:
        yield _terminate(TerminateStep(task, golden), host)
        yield StopStep(task, golden)
    if "cooperative_pause" in module.capabilities:
        yield PauseStep(task, golden, exact)
    if "cooperative_throttle" in module.capabilities:
        longest = next((item.task for item in duties if isinstance(item, DutyStep)), task)
        yield ThrottleStep(longest)


def _terminate(step: TerminateStep, host: Host) -> Item:
    if not host.platform.startswith("windows"):
        return step
    name = f"{step.title}: answers a stop that comes with SIGTERM"
    return check(step.suite, step.primary, name, "skip", "an agent on Windows sends no SIGTERM")


def _why_not(module: Module, golden: Golden, host: Host) -> str:
    stage = module.stage(golden.stage)
    if stage is None:
        return f"{golden.name} names the stage {found(golden.stage)}, which the manifest does not have"
    if stage.determinism == "none":
        return f"{golden.name} is of stage {stage.name}, whose results are never compared"
    return f"{golden.name} is for {', '.join(golden.platforms or ())}, and this host is {host.platform}"


# ---- tasks of the fixtures ------------------------------------------------------------------------------


def _runner_specs(module: Module, fixtures: Fixtures | None) -> Iterator[Item]:
    for spec in () if fixtures is None else fixtures.runner_specs:
        stage = module.stage(spec.stage)
        name = f"runner spec {spec.name}"
        if (fault := _stage_fault(module, stage, spec)) is not None:
            yield check("runner", "fixture.entry", f"runner spec #{spec.index}: fixture", "fail", f"{name}: {fault}")
        elif stage is not None:
            reason = _missing(stage, spec, fixtures)
            task = Task(spec.name, stage, spec.payload, spec.payload, spec.datasets, spec.mounts)
            title = f"{name}: ends as expected"
            yield SpecStep(task, spec) if reason is None else check("runner", "spec.exit", title, "skip", reason)


def _duty_specs(module: Module, fixtures: Fixtures | None, host: Host) -> Iterator[Item]:
    if fixtures is None:
        return
    for spec in fixtures.duty_specs:
        stage = module.stage(spec.stage)
        fault = _stage_fault(module, stage, spec) or _duty_fault(module)
        name = f"duty spec {spec.name}"
        if fault is not None:
            yield check("runner", "fixture.entry", f"duty spec #{spec.index}: fixture", "fail", f"{name}: {fault}")
        elif stage is not None:
            reason = _missing(stage, spec, fixtures) or _no_interface(module, host)
            task = Task(spec.name, stage, spec.payload, spec.payload, spec.datasets, spec.mounts)
            title = f"{name}: runs until it is measured"
            yield DutyStep(task, spec) if reason is None else check("runner", "duty.runs", title, "skip", reason)


def _stage_fault(module: Module, stage: Stage | None, spec: DutySpec | RunnerSpec) -> str | None:
    """Why a spec's stage cannot be run alone."""
    at = f"/{'duty_specs' if isinstance(spec, DutySpec) else 'runner_specs'}/{spec.index}/stage"
    if stage is None:
        if all(one.name is None for one in module.stages):
            return f"{at}: this manifest has no stages: leave stage out; found {found(spec.stage)}"
        names = ", ".join(str(one.name) for one in module.stages)
        return f"{at}: must be a stage of the manifest ({names}); found {found(spec.stage)}"
    if stage.after:
        return f"{at}: must be a stage that stands alone; found {stage.name}, which runs after {', '.join(stage.after)}"
    return None


def _duty_fault(module: Module) -> str | None:
    """Why no duty spec could ever prove anything with this manifest."""
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


def _missing(stage: Stage, spec: DutySpec | RunnerSpec, fixtures: Fixtures | None) -> str | None:
    """Why a sound spec cannot be laid out here."""
    there = {} if fixtures is None else fixtures.datasets
    missing = [dataset for dataset in spec.datasets if dataset not in there]
    if missing:
        return f"dataset {missing[0]} is not among the fixtures' datasets"
    if "containers" in stage.pools:
        return f"stage {stage.name} needs the pool containers, which the kit does not offer"
    return None


def _no_interface(module: Module, host: Host) -> str | None:
    apis = set(module.gpu_apis_any)
    if apis and host.gpu_apis is not None and not apis & host.gpu_apis:
        return f"this host offers none of the GPU interfaces {', '.join(sorted(apis))}"
    return None
