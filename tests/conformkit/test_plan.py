"""The plan: which checks, in which order, and which are decided before anything runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, argv, module
from oarbank_conformkit.checks import Check
from oarbank_conformkit.fixtures import fixtures
from oarbank_conformkit.goldens import Golden, golden
from oarbank_conformkit.plan import DoctorStep, DutyStep, GoldenStep, Item, plan
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


def test_order_is_doctor_then_golden_then_duty() -> None:
    assert [type(item) for item in planned()] == [DoctorStep, GoldenStep, DutyStep]


def test_golden_of_an_exact_stage_runs_twice_and_is_stopped() -> None:
    step = planned()[1]

    assert isinstance(step, GoldenStep)
    assert (step.repeat, step.stop) == (True, True)


def test_runner_that_is_not_cancellable_is_not_stopped() -> None:
    capabilities = [name for name in bundles.CAPABILITIES if name != "cancellable"]

    step = planned(capabilities=capabilities)[1]

    assert isinstance(step, GoldenStep)
    assert not step.stop


def test_first_golden_that_runs_here_is_taken() -> None:
    elsewhere, here = one_golden(name="mac", platforms=["darwin-arm64"]), one_golden(name="here")

    steps = [item for item in planned(goldens=(elsewhere, here)) if isinstance(item, GoldenStep)]

    assert [step.golden.name for step in steps] == ["here"]


def test_no_golden_for_this_host_is_unknown_and_says_why() -> None:
    (found,) = [item for item in planned(goldens=(one_golden(platforms=["darwin-arm64"]),)) if isinstance(item, Check)]

    assert (found.rule, found.status) == ("golden.exit", "unknown")
    assert "for darwin-arm64, and this host is linux-amd64" in found.detail


def test_golden_of_a_stage_that_is_never_compared_does_not_run() -> None:
    (found,) = [item for item in planned(goldens=(one_golden(stage="batch"),)) if isinstance(item, Check)]

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

    (found,) = [item for item in items if isinstance(item, Check)]
    assert (found.rule, found.status, found.name) == ("fixture.entry", "fail", "duty spec #0: fixture")
    assert sentence in found.detail
    assert not [item for item in items if isinstance(item, DutyStep)]


def test_stage_in_a_manifest_without_stages_is_told_to_go() -> None:
    bare = module({key: value for key, value in MANIFEST.items() if key != "stages"})
    listed = fixtures("conformance.json", json.dumps({"duty_specs": [SPEC]}).encode())

    (found,) = [item for item in plan(bare, (), listed, HOST) if isinstance(item, Check)]

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
    (found,) = [item for item in planned(**given) if isinstance(item, Check)]

    assert (found.rule, found.status) == ("duty.runs", "skip")
    assert word in found.detail


def test_interfaces_that_nobody_looked_for_do_not_skip() -> None:
    items = planned(gpu={"use": "shared", "apis_any": ["metal"]})

    assert isinstance(items[-1], DutyStep)


def test_without_the_runner_every_step_is_a_skip() -> None:
    items = planned(runner=False)

    assert [(item.rule, item.status) for item in items if isinstance(item, Check)] == [
        ("doctor.exit", "skip"),
        ("golden.exit", "skip"),
        ("duty.runs", "skip"),
    ]
    assert len(items) == 3


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
