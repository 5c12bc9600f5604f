"""Build a module's directory for a test: manifest, golden, fixtures and a runner."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarbank_sdk import canonical

HERE = Path(__file__).parent
MUTANTS = HERE.parent / "mutants"

PLATFORMS = ["linux-amd64", "linux-arm64", "darwin-arm64", "darwin-amd64"]
CAPABILITIES = ["cancellable", "cooperative_pause", "cooperative_throttle", "progress_events"]

DUTY_SPEC = {"name": "held", "duty": 0.3, "window_s": 2, "payload": {"units": 5000, "unit_s": 0.01}}
GOLDEN = {"units": 20, "unit_s": 0.01}

MANIFEST = """\
manifest = 1

[module]
id = "org.example.standin"
version = "1.2.3"
compat = "standin1"

[requires]
core = ">=2.10,<3"
platforms = {platforms}

[runner]
exec = ["python", "-I", "{{bundle}}/runner.py"]
capabilities = {capabilities}
stop_grace_s = {grace_s:g}
gpu = {{ use = "{gpu}" }}
env = {{ {env} }}

[[stages]]
name = "selftest"
timeout_s = {timeout_s:g}
secrets = {secrets}

[results]
digest = {{ version = 1, over = ["texts"] }}
schema = "result.schema.json"

[goldens]
fixtures = "goldens/*.json"
"""


RESULT_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["texts"],
    "properties": {"texts": {"type": "array", "items": {"type": "string"}}, "units": {"type": "integer", "minimum": 1}},
}


@dataclass
class Plan:
    """What the bundle says; a mutant's file may hold a `PLAN` of its own, as keyword arguments for this."""

    golden: dict[str, Any] = field(default_factory=lambda: dict(GOLDEN))
    duty_specs: list[dict[str, Any]] | None = field(default_factory=lambda: [dict(DUTY_SPEC)])
    capabilities: list[str] = field(default_factory=lambda: list(CAPABILITIES))
    platforms: list[str] = field(default_factory=lambda: list(PLATFORMS))
    gpu: str = "shared"
    env: dict[str, str] = field(default_factory=dict)
    grace_s: float = 20
    timeout_s: float = 60
    secrets: list[str] = field(default_factory=list)
    fixtures: dict[str, Any] = field(default_factory=dict)  # beside the duty specs
    coordinator: str | None = None  # its source; it takes the place of the runner as what a mutant is


COORDINATOR = """
[coordinator]
exec = ["python", "-I", "{bundle}/coordinator.py"]
capabilities = ["op.plan", "op.apply"]
timeouts = { "params.check" = 2 }

[[operations]]
verb = "queue"
title = "Queue"
effects = ["jobs.enqueue"]
"""


def build(folder: Path, runner: str, **changes: Any) -> Path:
    """Write a bundle into `folder` whose runner is the text `runner`, and return the folder."""
    plan = Plan(**changes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "oarbank-module.toml").write_text(manifest(plan))
    (folder / "runner.py").write_text(runner)
    (folder / "stand_in.py").write_text((HERE / "stand_in.py").read_text())
    (folder / "result.schema.json").write_text(json.dumps(RESULT_SCHEMA))
    (folder / "goldens").mkdir(exist_ok=True)
    (folder / "goldens" / "selftest.json").write_text(json.dumps(golden(plan.golden)))
    if plan.coordinator is not None:
        (folder / "coordinator.py").write_text(plan.coordinator)
        (folder / "coordinator_stand_in.py").write_text((HERE / "coordinator_stand_in.py").read_text())
    told = plan.fixtures if plan.duty_specs is None else {"duty_specs": plan.duty_specs, **plan.fixtures}
    if told:
        (folder / "conformance.json").write_text(json.dumps(told))
    return folder


def manifest(plan: Plan) -> str:
    """Return the text of the manifest."""
    text = MANIFEST.format(
        platforms=json.dumps(plan.platforms),
        capabilities=json.dumps(plan.capabilities),
        grace_s=plan.grace_s,
        gpu=plan.gpu,
        env=", ".join(f"{name} = {json.dumps(value)}" for name, value in plan.env.items()),
        timeout_s=plan.timeout_s,
        secrets=json.dumps(plan.secrets),
    )
    return text if plan.coordinator is None else text + COORDINATOR


def golden(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the golden of the stand-in for a payload."""
    digest = canonical.sha256({"texts": [f"{payload['units']} units"]})
    return {
        "name": "selftest",
        "stage": None,
        "key_inputs": payload,
        "payload": payload,
        "datasets": [],
        "mounts": {},
        "platforms": None,
        "expected": {"digest": digest, "digest_version": 1},
    }


def runner(body: str = "", *, prelude: str = "") -> str:
    """Return the source of a runner: the stand-in with the methods in `body`, indented as in a class."""
    return (
        "import os, sys\n"
        "sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n"
        "import contextlib, json, signal, threading, time\n"
        "from stand_in import Control, Duty, StandIn, Stopped, burn, replace_text\n"
        f"{prelude}\n"
        f"class Runner(StandIn):\n    pass\n{body}\n"
        "sys.exit(Runner().main())\n"
    )
