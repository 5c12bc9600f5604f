"""The levels that hold beside a protected program: numbers an owner wrote, or certificates that hold for this machine.

A certificate speaks of one module's work. It counts only where it holds for every job of that module that is to run
here; else it is refused with the reason, and nothing starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from oarbank_agent_check import certificate
from oarbank_agent_check.certificate import HostFacts, WorkFacts
from oarbank_agent_check.guard_config import Level, Protect
from oarbank_agent_check.host_facts import host_facts, work_facts
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.toml_file import file_bytes
from oarbank_agent_check.lanes import JobPlan
from oarbank_sdk.contracts.judge import judge

Wrong = Callable[[str, str], Exception]
"""Makes the error for a place in the configuration and what must hold there."""


class Certificates:
    """Reads levels for the jobs that are to run."""

    def __init__(self, host: Host, plans: Sequence[JobPlan], folder: Path, wrong: Wrong) -> None:
        self._host = host
        self._plans = plans
        self._folder = folder
        self._wrong = wrong
        self._known: dict[tuple[object, ...], WorkFacts] = {}

    def levels(self, at: str, program: Protect) -> tuple[float | None, dict[str, float]]:
        """Return the level beside a program, and those by module. Raises what `wrong` makes, and `UsageError`."""
        by_module: dict[str, float] = {}
        level: float | None = None
        if isinstance(program.level, str):
            module, granted = self._granted(f"{at}/level", program.level)
            by_module[module] = granted
        elif program.level is not None:
            level = float(program.level)
        for name, one in program.levels.items():
            by_module[name] = self._of_module(f"{at}/levels/{name}", name, one)
        return level, by_module

    def _of_module(self, pointer: str, name: str, level: Level) -> float:
        if not isinstance(level, str):
            return float(level)
        module, granted = self._granted(pointer, level)
        if module != name:
            raise self._wrong(pointer, f"must be a certificate of this module; found one of {module}")
        return granted

    def _granted(self, pointer: str, given: str) -> tuple[str, float]:
        path = self._folder / given[1:]
        data = file_bytes(path, str(path))
        verdict = judge(certificate.KIND, data)
        if not verdict.valid:
            raise self._wrong(pointer, verdict.faults[0].line(str(path)))
        module = str(verdict.value["module"]["id"])
        works = [self._work(plan) for plan in self._plans if plan.module.id == module]
        if not works:
            raise self._wrong(pointer, f"must certify a job's module; found {module}, and no job here is of it")
        level = 1.0
        for work in works:
            found = certificate.level_from(data, str(path), self._machine, work)
            if isinstance(found, str):
                raise self._wrong(pointer, found)
            level = min(level, found)
        return module, level

    @cached_property
    def _machine(self) -> HostFacts:
        return host_facts(self._host)

    def _work(self, plan: JobPlan) -> WorkFacts:
        key = (plan.module.id, plan.folder, plan.task.stage.name, str(plan.task.payload.get("model")), plan.data)
        if key not in self._known:
            self._known[key] = work_facts(plan.module, plan.folder, plan.task.stage, plan.task.payload, plan.data)
        return self._known[key]
