"""From an owner's configuration to a machine that is guarded: all of it is checked before anything starts.

The half of the command `guard` that takes long to load. It translates: wrong words and files are `UsageError`, with
the line they are on; what this machine cannot do is `HostFault`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarbank_agent_check import operations
from oarbank_agent_check.agent_state import StateFolder, default_folder
from oarbank_agent_check.guard import Guard
from oarbank_agent_check.guard_config import GuardConfig, JobEntry, guard_config
from oarbank_agent_check.guard_levels import Certificates
from oarbank_agent_check.guard_results import GuardResults
from oarbank_agent_check.guard_story import Story
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.jobs.faults import UsageError
from oarbank_agent_check.jobs.host import Host, this_host
from oarbank_agent_check.jobs.manifest import Manifest, read_runnable
from oarbank_agent_check.jobs.module import Module, Stage, stage_alone
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.jobs.toml_file import file_bytes, read_toml
from oarbank_agent_check.lanes import Ground, JobPlan, Lane, WorkloadPlan
from oarbank_agent_check.law import Law
from oarbank_agent_check.process_scan import ProcessScan
from oarbank_agent_check.programs import ProtectedProgram
from oarbank_agent_check.run_request import data_folder, open_journal, readers_here
from oarbank_agent_check.screen import Screen
from oarbank_agent_check.sources import gpu
from oarbank_agent_check.toml_lines import line_of, path_of
from oarbank_sdk import strictjson
from oarbank_sdk.canonical import CanonicalError
from oarbank_sdk.contracts.judge import judge_value

KIND = "guard-config-1"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration with the text it was read from."""

    shown: str
    folder: Path
    text: str
    config: GuardConfig

    def wrong(self, pointer: str, message: str) -> UsageError:
        """Return the error for a value, with its line."""
        return _wrong(self.shown, self.text, pointer, message)

    def object_at(self, pointer: str, value: Mapping[str, Any] | str | None) -> dict[str, Any]:
        """Return an object that is written here, or in a file that is named here."""
        if not isinstance(value, str):
            return dict(value or {})
        path = self.folder / value[1:]
        try:
            read = strictjson.loads(file_bytes(path, str(path)))
        except strictjson.StrictJSONError as exc:
            raise UsageError(f"{path}: {exc}") from None
        if not isinstance(read, dict):
            raise UsageError(f"{path}: must be one JSON object; found another value. {pointer} names this file.")
        return read


def read_config(shown: str) -> ConfigFile:
    """Read and judge a configuration. Raises `UsageError` with the line of the first fault."""
    path = Path(shown)
    text, document = read_toml(path, shown)
    faults = judge_value(KIND, document)
    if faults:
        raise _wrong(shown, text, faults[0].pointer, faults[0].message)
    return ConfigFile(shown, path.resolve().parent, text, guard_config(document))


def run_guard(arguments: argparse.Namespace, interrupts: Interrupts, screen: Screen, stack: ExitStack) -> int:
    """Guard the machine as the command's words ask for, and give the exit code; `stack` closes what was opened."""
    _places(arguments)
    file = read_config(arguments.config)
    config, host = file.config, this_host()
    if arguments.measure == "gpu":
        told = any(one.level is not None or one.levels for one in config.protect)
        for reader in readers_here(must=told and config.gpu_jobs == "certified"):
            reader.close()
    state = stack.enter_context(StateFolder(Path(arguments.state) if arguments.state else default_folder()))
    results = GuardResults(Path(arguments.out or f"{Path(arguments.config).stem}-results"))
    plans = [_plans(file, i, entry, host, state) for i, entry in enumerate(config.jobs)]
    certificates = Certificates(host, [plan for jobs in plans for plan in jobs], file.folder, file.wrong)
    levels = [certificates.levels(f"/protect/{i}", program) for i, program in enumerate(config.protect)]
    journal, journal_path = open_journal(arguments.journal, state, stack)
    story = Story(journal, screen, html=arguments.html, as_json=arguments.json)
    earlier = _earlier(journal_path)
    law = Law(state, story.write, arguments.time_factor)
    story.begin(law.clock, earlier)
    ground = Ground(law, host, results, arguments.measure, gpu.readers, story.say)
    lanes = []
    for entry, jobs in zip(config.jobs, plans, strict=True):
        left = [job for job in jobs if not results.finished(job.name, job.key)]
        if len(left) < len(jobs):
            story.say(f"{entry.name}: {len(jobs) - len(left)} of {len(jobs)} are done already, in {results.root}")
        lanes.append(Lane(entry.name, left, ground, finished=len(jobs) - len(left)))
    for workload in config.workloads:
        folder = file.folder if workload.folder is None else file.folder / workload.folder
        lanes.append(Lane(workload.name, [WorkloadPlan(workload, folder.resolve())], ground))
    programs = [
        ProtectedProgram(
            told,
            level,
            more,
            folder=file.folder,
            measure=arguments.measure,
            readers=gpu.readers,
            learns=config.gpu_jobs == "certified",
        )
        for told, (level, more) in zip(config.protect, levels, strict=True)
    ]
    scan = ProcessScan({told.name: told.match for told in config.protect})
    guard = Guard(config.gpu_jobs, programs, lanes, law, scan, interrupts, screen, story.tell)
    try:
        code = guard.run()
    finally:
        screen.close()
        story.close()
    story.end(code)
    return code


def _earlier(journal: Path | None) -> str | None:
    """Say which file tells of runs before this one; None where none does."""
    try:
        return None if journal is None or journal.stat().st_size == 0 else str(journal)
    except OSError:
        return None


def _places(arguments: argparse.Namespace) -> None:
    """Look whether what is to be written can be told apart, and has a place."""
    if arguments.json and arguments.journal == "-":
        raise UsageError("--journal -: must not go where --json goes, to standard output. Give the journal a file.")
    if arguments.html is not None:
        page = Path(arguments.html)
        if page.is_dir() or not page.parent.is_dir() or not os.access(page.parent, os.W_OK | os.X_OK):
            raise UsageError(f"--html {page}: must be a file in a folder to write in; found none. Give another.")


def _wrong(shown: str, text: str, pointer: str, message: str) -> UsageError:
    where = f"{pointer}: " if pointer else ""
    return UsageError(f"{shown}: line {line_of(text, path_of(pointer))}: {where}{message}")


# ---- jobs ---------------------------------------------------------------------------------------------------


def _plans(file: ConfigFile, index: int, entry: JobEntry, host: Host, state: StateFolder) -> list[JobPlan]:
    at = f"/job/{index}"
    manifest, module = _module(file, f"{at}/module", entry, host)
    folder = manifest.folder.resolve()
    data = state.data(module.id) if entry.data is None else file.folder / entry.data
    data_folder(data, f"{file.shown}: {at}/data" if entry.data is not None else "--state")
    if entry.op is None:
        stage = _stage(file, f"{at}/stage", module, entry.stage)
        tasks = [Task(entry.name, stage, payload := file.object_at(f"{at}/payload", entry.payload), payload)]
    else:
        params = file.object_at(f"{at}/params", entry.params)
        jobs = operations.expand(manifest, folder, host, entry.op, params, lambda p, m: file.wrong(f"{at}{p}", m))
        tasks = [
            Task(
                entry.name if len(jobs) == 1 else f"{entry.name}.{number}",
                _stage(file, f"{at}/op", module, one.stage),
                one.payload,
                one.payload,
            )
            for number, one in enumerate(jobs, 1)
        ]
    return [JobPlan(task.name, module, folder, task, _key(file, at, module, task, host), data) for task in tasks]


def _module(file: ConfigFile, pointer: str, entry: JobEntry, host: Host) -> tuple[Manifest, Module]:
    try:
        return read_runnable(str(file.folder / entry.module), host.platform)
    except UsageError as exc:
        raise file.wrong(pointer, str(exc)) from None


def _stage(file: ConfigFile, pointer: str, module: Module, name: str | None) -> Stage:
    try:
        return stage_alone(module, name)
    except UsageError as exc:
        raise file.wrong(pointer, str(exc)) from None


def _key(file: ConfigFile, at: str, module: Module, task: Task, host: Host) -> str:
    try:
        return envelope(module, task, host.platform)["job_key"]
    except CanonicalError as exc:
        raise file.wrong(f"{at}/payload", str(exc)) from None
