"""The plan: which checks, in which order, and which are decided before anything runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_agent_check.jobs.coordinator import Coordinator
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, argv, module
from oarbank_conformkit.checks import Check
from oarbank_conformkit.fixtures import fixtures
from oarbank_conformkit.goldens import Golden, golden
from oarbank_conformkit.plan import Item, plan
from oarbank_conformkit.rules import chosen
from oarbank_conformkit.steps import (
    DoctorStep,
    DutyStep,
    GoldenStep,
    PauseStep,
    ProtocolStep,
    RepeatStep,
    RetryStep,
    SpecStep,
    StopStep,
    TerminateStep,
    ThrottleStep,
    wanted,
)
from tests.conformkit import bundles

HOST = Host("linux-amd64", "/usr/bin/python3", "3.11.7", 2)
MANIFEST: dict[str, Any] = {
    "module": {"id": "org.example.standin", "version": "1.2.3", "compat": "c1"},
    "requires": {"platforms": ["linux-amd64"]},
    "runner": {
        "exec": ["python", "-I", "{bundle}/r.py"],
        "capabilities": bundles.CAPABILITIES,
        "gpu": {"use": "shared"},
    },
    "stages": [
        {"name": "selftest", "default": True},
        {"name": "batch", "determinism": "none"},
        {"name": "join", "after": "batch"},
    ],
    "results": {"digest": {"over": ["texts"]}},
    "goldens": {"fixtures": "goldens/*.json"},
}
SPEC = {"name": "held", "stage": "batch", "duty": 0.3, "payload": {}}


def facts(**runner: Any) -> Module:
    return module(MANIFEST | {"runner": MANIFEST["runner"] | runner})


def one_golden(**changes: Any) -> Golden:
    made = golden("goldens/a.json", json.dumps(bundles.golden({"units": 3}) | changes).encode())
    assert isinstance(made, Golden), made
    return made


def planned(
    *,
    goldens: tuple[Golden, ...] | None = None,
    specs: Any = (SPEC,),
    host: Host = HOST,
    runner: bool = True,
    **of: Any,
) -> tuple[Item, ...]:
    listed = fixtures("conformance.json", json.dumps({"duty_specs": list(specs)}).encode())
    return plan(facts(**of), (one_golden(),) if goldens is None else goldens, listed, host, runner=runner)


def decided(items: tuple[Item, ...]) -> list[Check]:
    """The checks that need no run, the one of the coordinator that is not there aside."""
    return [item for item in items if isinstance(item, Check) and not item.rule.startswith("protocol.")]


EVERYTHING = [
    DoctorStep,
    GoldenStep,
    RepeatStep,
    RetryStep,
    TerminateStep,
    StopStep,
    PauseStep,
    ThrottleStep,
    DutyStep,
]


def steps(items: tuple[Item, ...]) -> list[type]:
    """The kinds of the steps, in order."""
    return [type(item) for item in items if not isinstance(item, Check)]


def test_order_is_what_runs_side_by_side_then_what_measures() -> None:
    items = planned()

    assert steps(items) == EVERYTHING
    waves = [item.wave for item in items if not isinstance(item, Check)]
    assert waves == [0, 0, 1, 1, 1, None, None, None, None]


LACKING = [("cancellable", {StopStep, TerminateStep}), ("cooperative_pause", {PauseStep})]


@pytest.mark.parametrize(("capability", "lost"), LACKING, ids=[row[0] for row in LACKING])
def test_what_a_runner_does_not_declare_is_not_asked_of_it(capability: str, lost: set[type]) -> None:
    capabilities = [name for name in bundles.CAPABILITIES if name != capability]

    assert steps(planned(capabilities=capabilities)) == [kind for kind in EVERYTHING if kind not in lost]


def test_nobody_is_terminated_on_windows() -> None:
    on_windows = module(MANIFEST | {"requires": {"platforms": ["windows-amd64"]}})

    items = plan(on_windows, (one_golden(),), None, replace(HOST, platform="windows-amd64"))

    [skipped] = [item for item in decided(items) if item.rule == "stop.sigterm"]
    assert (skipped.status, skipped.detail) == ("skip", "an agent on Windows sends no SIGTERM")
    assert TerminateStep not in steps(items)


def test_stage_whose_results_need_not_be_equal_is_not_retried_and_not_compared() -> None:
    listed = [{"name": "selftest", "default": True, "determinism": "tolerance"}, *MANIFEST["stages"][1:]]

    items = plan(module(MANIFEST | {"stages": listed}), (one_golden(),), None, HOST)

    [repeat] = [item for item in items if isinstance(item, RepeatStep)]
    assert not repeat.exact
    assert RetryStep not in steps(items)


def test_threads_are_tried_on_the_task_of_a_duty_spec_because_it_lasts() -> None:
    [throttle] = [item for item in planned() if isinstance(item, ThrottleStep)]
    [alone] = [item for item in planned(specs=()) if isinstance(item, ThrottleStep)]

    assert (throttle.task.name, alone.task.name) == ("held", "selftest")


CHOICES = [
    ("doctor", [DoctorStep]),
    ("stop.exit", [GoldenStep, StopStep]),
    ("stop.sigterm", [GoldenStep, TerminateStep]),
    ("golden.payload", [GoldenStep]),
    ("duty", [DutyStep]),
    ("throttle.*", [ThrottleStep]),
    ("writes", [GoldenStep, RepeatStep]),
    ("golden.repeat", [GoldenStep, RepeatStep]),
]


@pytest.mark.parametrize(("pattern", "kinds"), CHOICES, ids=[row[0] for row in CHOICES])
def test_choice_runs_what_it_needs_and_no_more(pattern: str, kinds: list[type]) -> None:
    every = tuple(item for item in planned() if not isinstance(item, Check))

    assert [type(step) for step in wanted(every, chosen([pattern]))] == kinds


def test_coordinator_is_spoken_with_and_a_runner_alone_skips_it() -> None:
    about = Coordinator(("python", "m.py"), {}, frozenset(), {}, {"queue": ("jobs.enqueue",)})
    listed = fixtures("conformance.json", b'{"ops": [{"verb": "queue"}, {"verb": "other"}]}')

    items = plan(facts(), (one_golden(),), listed, HOST, coordinator=about)

    assert steps(items)[:3] == [DoctorStep, ProtocolStep, GoldenStep]
    [bad] = [item for item in items if isinstance(item, Check)]
    assert (bad.rule, bad.status) == ("fixture.entry", "fail")
    assert "must be an operation of the manifest (queue); found 'other'" in bad.detail
    [none] = [item for item in planned() if isinstance(item, Check)]
    assert (none.rule, none.status) == ("protocol.starts", "skip")


def test_runner_specs_run_before_what_measures() -> None:
    listed = fixtures("conformance.json", json.dumps({"runner_specs": [{"name": "a", "payload": {}}]}).encode())

    kinds = steps(plan(facts(), (one_golden(),), listed, HOST))

    assert kinds.index(SpecStep) == kinds.index(StopStep) - 1


def test_first_golden_that_runs_here_is_taken() -> None:
    elsewhere, here = one_golden(name="mac", platforms=["darwin-arm64"]), one_golden(name="here")

    steps = [item for item in planned(goldens=(elsewhere, here)) if isinstance(item, GoldenStep)]

    assert [step.golden.name for step in steps] == ["here"]


def test_no_golden_for_this_host_is_unknown_and_says_why() -> None:
    (found,) = decided(planned(goldens=(one_golden(platforms=["darwin-arm64"]),)))

    assert (found.rule, found.status) == ("golden.exit", "unknown")
    assert "for darwin-arm64, and this host is linux-amd64" in found.detail


def test_golden_of_a_stage_that_is_never_compared_does_not_run() -> None:
    (found,) = decided(planned(goldens=(one_golden(stage="batch"),)))

    assert "never compared" in found.detail


FAULTS = [
    ("stage that is not there", {"specs": [SPEC | {"stage": "other"}]}, "(selftest, batch, join); found 'other'"),
    ("stage after another", {"specs": [SPEC | {"stage": "join"}]}, "which runs after batch"),
    (
        "no throttle",
        {"capabilities": ["progress_events", "cancellable"]},
        "must hold cooperative_throttle for a duty spec, or the runner never gets a duty; found cancellable, progress_",
    ),
    ("no capabilities", {"capabilities": []}, "found no capabilities at all"),
    ("no events", {"capabilities": ["cancellable", "cooperative_throttle"]}, "must hold progress_events"),
    ("no GPU", {"gpu": {"use": "none"}}, "/runner/gpu/use: must be shared or exclusive"),
]


@pytest.mark.parametrize(("why", "given", "sentence"), FAULTS, ids=[row[0] for row in FAULTS])
def test_spec_that_could_prove_nothing_fails_without_a_run(why: str, given: dict[str, Any], sentence: str) -> None:
    items = planned(**given)

    (found,) = decided(items)
    assert (found.rule, found.status, found.name) == ("fixture.entry", "fail", "duty spec #0: fixture")
    assert sentence in found.detail
    assert not [item for item in items if isinstance(item, DutyStep)]


def test_stage_in_a_manifest_without_stages_is_told_to_go() -> None:
    bare = module({key: value for key, value in MANIFEST.items() if key != "stages"})
    listed = fixtures("conformance.json", json.dumps({"duty_specs": [SPEC]}).encode())

    (found,) = decided(plan(bare, (), listed, HOST))

    assert "this manifest has no stages: leave stage out; found 'batch'" in found.detail


SKIPS = [
    ("dataset", {"specs": [SPEC | {"datasets": ["scene:a"]}]}, "scene:a"),
    (
        "GPU interface",
        {"gpu": {"use": "shared", "apis_any": ["metal"]}, "host": replace(HOST, gpu_apis=frozenset({"cuda"}))},
        "metal",
    ),
]


@pytest.mark.parametrize(("why", "given", "word"), SKIPS, ids=[row[0] for row in SKIPS])
def test_spec_that_does_not_apply_here_is_a_skip(why: str, given: dict[str, Any], word: str) -> None:
    (found,) = decided(planned(**given))

    assert (found.rule, found.status) == ("duty.runs", "skip")
    assert word in found.detail


def test_interfaces_that_nobody_looked_for_do_not_skip() -> None:
    items = planned(gpu={"use": "shared", "apis_any": ["metal"]})

    assert isinstance(items[-1], DutyStep)


def test_without_the_runner_every_step_is_a_skip() -> None:
    items = planned(runner=False)

    assert all(isinstance(item, Check) and item.status == "skip" for item in items)
    assert len(items) == len(EVERYTHING) + 1


def test_host_that_the_module_does_not_run_on_is_wrong_use() -> None:
    with pytest.raises(UsageError, match=r"must list this host, linux-arm64, .* found linux-amd64"):
        planned(host=replace(HOST, platform="linux-arm64"))

    assert planned(host=replace(HOST, platform="linux-arm64"), runner=False)


def test_single_standalone_stage_is_the_default() -> None:
    only = module(MANIFEST | {"stages": [{"name": "work"}, {"name": "join", "after": ["work"]}]})

    assert only.default_stage_name() == "work"
    assert only.stage(None) is only.stage("work")


def test_tokens_of_a_command_line_are_replaced() -> None:
    command = argv(("python", "-I", "{bundle}/r.py", "--home={bundle}", "python"), "/b", "/usr/bin/python3")

    assert command == ["/usr/bin/python3", "-I", "/b/r.py", "--home=/b", "python"]
    assert argv(("{bundle}/bin/r",), "/b", "/p") == ["/b/bin/r"]
