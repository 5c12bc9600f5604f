"""What has to be known of a module to run it, taken from its manifest.

Pure: a manifest that the contract accepts goes in as a value, typed facts come out, with the contract's defaults.
Whether the manifest is right is not decided here but by the contract itself (`oarbank_sdk.contracts.judge`), which has
spoken before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oarbank_agent_check.jobs.faults import UsageError

MANIFEST = "oarbank-module.toml"
FIXTURES = "conformance.json"
BUNDLE = "{bundle}"

DEFAULT_STOP_GRACE_S = 20.0  # contract of the manifest
DEFAULT_TIMEOUT_S = 1800.0
EVENT_WRITERS = frozenset({"progress_events", "checkpoint"})
"""Capabilities that earn a runner the argument `--events`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One kind of task; `name` is None in a manifest that lists no stages."""

    name: str | None
    default: bool
    after: tuple[str, ...]  # stages whose results it needs
    determinism: str  # "none": never compared
    timeout_s: float
    resources: Mapping[str, Any]
    pools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """A manifest's facts."""

    id: str
    version: str
    compat: str
    platforms: tuple[str, ...]
    exec: tuple[str, ...]
    env: Mapping[str, str]
    capabilities: frozenset[str]
    stop_grace_s: float
    gpu_use: str  # none, shared or exclusive
    gpu_apis_any: tuple[str, ...]
    stages: tuple[Stage, ...]
    schema_version: int
    digest_over: tuple[str, ...]
    digest_version: int | None
    goldens: str | None  # a glob in the bundle

    @property
    def short(self) -> str:
        """The last label of the id: the name on the wire."""
        return self.id.rpartition(".")[2]

    @property
    def cancellable(self) -> bool:
        """Whether the runner promises to end when it is told to stop."""
        return "cancellable" in self.capabilities

    @property
    def throttles(self) -> bool:
        """Whether the runner declares what earns it a duty: `cooperative_throttle` and the use of a GPU."""
        return "cooperative_throttle" in self.capabilities and self.gpu_use != "none"

    @property
    def writes_events(self) -> bool:
        """Whether the runner is started with `--events`."""
        return bool(self.capabilities & EVENT_WRITERS)

    def stage(self, name: str | None) -> Stage | None:
        """Return the stage of that name, the default one for None, or None where there is no such stage."""
        for stage in self.stages:
            if stage.default if name is None else stage.name == name:
                return stage
        return None

    def default_stage_name(self) -> str | None:
        """Return the name of the default stage, which job keys and spec envelopes leave out."""
        stage = self.stage(None)
        return None if stage is None else stage.name


def module(manifest: Mapping[str, Any]) -> Module:
    """Return the facts of a valid manifest."""
    about, runner, results = manifest["module"], manifest["runner"], manifest["results"]
    gpu = runner.get("gpu", {})
    digest = results.get("digest") or {}
    goldens = manifest.get("goldens") or {}
    return Module(
        id=about["id"],
        version=about["version"],
        compat=about["compat"],
        platforms=tuple(manifest["requires"]["platforms"]),
        exec=tuple(runner["exec"]),
        env=runner.get("env", {}),
        capabilities=frozenset(runner.get("capabilities", [])),
        stop_grace_s=float(runner.get("stop_grace_s", DEFAULT_STOP_GRACE_S)),
        gpu_use=gpu.get("use", "none"),
        gpu_apis_any=tuple(gpu.get("apis_any", [])),
        stages=_stages(manifest.get("stages", []), results.get("determinism", "exact")),
        schema_version=results.get("schema_version", 1),
        digest_over=tuple(digest.get("over", [])),
        digest_version=digest.get("version", 1) if digest else None,
        goldens=goldens.get("fixtures"),
    )


def _stages(listed: list[Mapping[str, Any]], determinism: str) -> tuple[Stage, ...]:
    if not listed:
        return (Stage(None, True, (), determinism, DEFAULT_TIMEOUT_S, {}),)
    standalone = [entry["name"] for entry in listed if not _after(entry)]
    only = standalone[0] if len(standalone) == 1 else None
    return tuple(
        Stage(
            name=entry["name"],
            default=entry.get("default", False) or entry["name"] == only,
            after=_after(entry),
            determinism=entry.get("determinism") or determinism,
            timeout_s=float(entry.get("timeout_s", DEFAULT_TIMEOUT_S)),
            resources=entry.get("requires", {}).get("resources", {}),
            pools=tuple(entry.get("requires", {}).get("pools", {})),
        )
        for entry in listed
    )


def _after(entry: Mapping[str, Any]) -> tuple[str, ...]:
    after = entry.get("after")
    if after is None:
        return ()
    return (after,) if isinstance(after, str) else tuple(after)


def stage_alone(module: Module, name: str | None) -> Stage:
    """Return the stage of that name, the default one for None, which needs no other stage's results.

    Raises `UsageError`, whose text leaves out the place: its caller knows it.
    """
    stage = module.stage(name)
    if stage is None:
        known = ", ".join(one.name for one in module.stages if one.name is not None) or "none, so leave it out"
        raise UsageError(f"must be a stage of the module; found {str(name)[:80]!r}. There is {known}.")
    if stage.after:
        after = ", ".join(stage.after)
        raise UsageError(f"must run by itself; found {stage.name}, which needs the results of {after}.")
    return stage


def run_command(module: Module, bundle: str, python: str, workdir: str) -> list[str]:
    """Return the command line of `run` in a workdir; `--events` for those alone that write events."""
    command = argv(module.exec, bundle, python)
    command += ["run", "--spec", f"{workdir}/spec.json", "--workdir", workdir, "--out", f"{workdir}/result.json"]
    return command + (["--events", f"{workdir}/events.ndjson"] if module.writes_events else [])


def argv(exec_: tuple[str, ...], bundle: str, python: str) -> list[str]:
    """Return a manifest's command line with its tokens replaced: `python` in front and `{bundle}` anywhere."""
    first, *rest = exec_
    return [
        python if first == "python" else first.replace(BUNDLE, bundle),
        *(arg.replace(BUNDLE, bundle) for arg in rest),
    ]
