"""From an owner's words to a job that runs: what is asked is checked as a whole before anything starts.

The half of the command `run` that takes long to load. It translates: wrong words and files are `UsageError`, what
this machine cannot do is `HostFault`; what came of the job is an outcome.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from oarbank_agent_check import outcome
from oarbank_agent_check.agent import Agent, Request
from oarbank_agent_check.agent_state import StateFolder, default_folder
from oarbank_agent_check.certified_level import NotCertified, certified_level
from oarbank_agent_check.commands.words import write_lines
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.jobs.host import Host, this_host
from oarbank_agent_check.jobs.manifest import file_bytes, read_runnable
from oarbank_agent_check.jobs.module import Module, stage_alone
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_agent_check.journal_file import JournalFile
from oarbank_agent_check.law import Journal, Law
from oarbank_agent_check.outcome import Outcome
from oarbank_agent_check.result_folder import ResultFolder
from oarbank_agent_check.screen import Screen
from oarbank_agent_check.sources import gpu
from oarbank_sdk import strictjson
from oarbank_sdk.canonical import CanonicalError


def run_job(arguments: argparse.Namespace, interrupts: Interrupts, screen: Screen, stack: ExitStack) -> int:
    """Run the job that the command's words ask for, and give the exit code; `stack` closes what was opened."""
    certified = isinstance(arguments.level, Path)
    if (arguments.level is None) != (arguments.pressure is None) and not (certified and arguments.pressure is None):
        raise UsageError(
            "--level and --pressure go together: the pressure moves the level. Use --duty for a fixed duty."
        )
    host = this_host()
    _, module = read_runnable(arguments.dir, host.platform)
    task = task_of(module, arguments.stage, payload_of(arguments.payload), host)
    readers = readers_here(must=arguments.check, unmeasured=True) if arguments.measure == "gpu" else []
    for reader in readers:
        stack.callback(reader.close)
    state = stack.enter_context(StateFolder(Path(arguments.state) if arguments.state else default_folder()))
    journal, _ = open_journal(arguments.journal, state, stack)
    law = Law(state, journal, arguments.time_factor)
    data = Path(arguments.data) if arguments.data else state.data(module.id)
    data_folder(data)
    try:
        level = _level(arguments, host, module, task, data)
    except NotCertified as why:
        screen.say(f"not started: {why}")
        return outcome.NO
    stage = task.stage.name or "job"
    out = ResultFolder(Path(arguments.out)) if arguments.out else ResultFolder.beside(f"{module.short}-{stage}-result")
    stack.callback(out.drop)
    request = Request(
        module=module,
        folder=Path(arguments.dir).resolve(),
        task=task,
        job=f"run-{secrets.token_hex(6)}",
        level=level,
        pressure=arguments.pressure,
        measure=arguments.measure,
        readers=readers,
        check=arguments.check,
        data=data.resolve(),
    )
    found = Agent(request, law, host, out, interrupts, screen).run()
    _tell(found, screen, journal_on_stdout=arguments.journal == "-")
    return found.exit


def _level(arguments: argparse.Namespace, host: Host, module: Module, task: Task, data: Path) -> float:
    if isinstance(arguments.level, Path):
        folder = Path(arguments.dir).resolve()
        return certified_level(arguments.level, host, module, folder, task.stage, task.payload, data.resolve())
    return arguments.duty if arguments.level is None else arguments.level


def _tell(found: Outcome, screen: Screen, *, journal_on_stdout: bool) -> None:
    screen.say(found.line)
    if found.result is not None:
        plain = not (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
        payload = json.dumps(found.result["payload"], ensure_ascii=plain)
        if journal_on_stdout:
            screen.say(payload)
        else:
            write_lines([payload])


def task_of(module: Module, name: str | None, payload: dict[str, Any], host: Host) -> Task:
    """Make the task of a stage and a payload. Raises `UsageError`."""
    try:
        stage = stage_alone(module, name)
    except UsageError as exc:
        raise UsageError(f"--stage: {exc}") from None
    task = Task("run", stage, payload, payload)
    try:
        envelope(module, task, host.platform)
    except CanonicalError as exc:
        raise UsageError(f"--payload: {exc}") from None
    return task


def payload_of(given: str) -> dict[str, Any]:
    """Read a payload, JSON or @FILE. Raises `UsageError`."""
    where = "--payload"
    data: str | bytes = given
    if given.startswith("@"):
        where = given[1:]
        data = file_bytes(Path(where), where)
    try:
        value = strictjson.loads(data)
    except strictjson.StrictJSONError as exc:
        raise UsageError(f"{where}: {exc}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{where}: must be one JSON object; found {data[:60]!s}.")
    return value


def readers_here(*, must: bool, unmeasured: bool = False) -> Sequence[GpuReader]:
    """The readers of this machine, none where none can read; then `must` raises `HostFault` before anything starts.

    `unmeasured` says that the command has a --no-check to offer.
    """
    try:
        found = gpu.readers()
    except gpu.UnknownReader as exc:
        raise UsageError(str(exc)) from None
    hindrances = [(reader.name, reader.hindrance()) for reader in found]
    if found and not all(why for _, why in hindrances):
        return found
    for reader in found:
        reader.close()
    if not must:
        return []
    whys = "; ".join(f"{name}: {why.reason.rstrip('.')}" for name, why in hindrances if why) or "there is no reader"
    raise HostFault(
        f"--measure gpu: GPU time must be readable here; {whys}. Use --measure cpu where the units run on the CPU"
        + (", or --no-check to run it unmeasured." if unmeasured else ".")
    )


def open_journal(given: str | None, state: StateFolder, stack: ExitStack) -> tuple[Journal, Path | None]:
    """Open the journal that is asked for, and say which file it is; None for standard output."""
    if given == "-":
        return write_lines, None
    path = state.journal if given is None else Path(given)
    return stack.enter_context(JournalFile(path)), path


def data_folder(data: Path, shown: str = "--data") -> None:
    """Make a module's own folder. Raises `UsageError`; `shown` is how it was asked for."""
    try:
        (data / "tmp").mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise UsageError(f"{shown} {data}: must be a folder that can be made; {why}. Give another.") from None
