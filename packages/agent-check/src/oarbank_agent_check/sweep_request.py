"""From an owner's words to a certificate: what is asked is checked as a whole before anything starts.

The half of the command `sweep` that takes long to load. It translates: wrong words and files are `UsageError`, what
this machine cannot do is `HostFault`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from oarbank_agent_check import certificate, run_request, sweep_view
from oarbank_agent_check.agent_state import default_folder
from oarbank_agent_check.certify import Certifier, Rules
from oarbank_agent_check.commands.words import COULD_NOT_TELL, NO, YES, write_lines
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.host_facts import host_facts, work_facts
from oarbank_agent_check.interrupts import Interrupts
from oarbank_agent_check.jobs.faults import HostFault, UsageError
from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.jobs.live import LiveText
from oarbank_agent_check.jobs.manifest import read_runnable
from oarbank_agent_check.jobs.module import Module
from oarbank_agent_check.progress import Progress, progress
from oarbank_agent_check.screen import Screen
from oarbank_agent_check.sources import gpu
from oarbank_agent_check.sweep import Interrupted, Pace, Sweep
from oarbank_agent_check.sweep_work import Work, WorkRequest
from oarbank_agent_check.windows import Pair
from oarbank_sdk.contracts.judge import judge
from oarbank_sdk.control import replace_text


def run_sweep(arguments: argparse.Namespace, interrupts: Interrupts, screen: Screen, stack: ExitStack) -> int:
    """Search for the level that the command's words ask for, and give the exit code."""
    host = this_host()
    _, module = read_runnable(arguments.dir, host.platform)
    _may_be_certified(module)
    task = run_request.task_of(module, arguments.stage, run_request.payload_of(arguments.payload), host)
    pace = Pace(arguments.window, arguments.settle, task.stage.timeout_s)
    if pace.job_s <= 2 * pace.pair_s:
        raise UsageError(
            f"--window: two pairs of windows must fit into the stage's timeout_s, {pace.job_s:g} s; found"
            f" {pace.pair_s:g} s a pair. Use shorter windows."
        )
    rules = Rules(arguments.target, arguments.levels, arguments.time_limit, arguments.least_pairs)
    data = Path(arguments.data) if arguments.data else default_folder() / "data" / module.id
    run_request.data_folder(data)
    folder, data = Path(arguments.dir).resolve(), data.resolve()
    facts = work_facts(module, folder, task.stage, task.payload, data)
    counter = _counter(arguments.progress)
    if arguments.measure == "gpu":
        _must_read()
    out = _out(arguments.out, module, task.stage.name)
    machine = host_facts(host)
    seed = secrets.randbits(32) if arguments.seed is None else arguments.seed
    certifier = Certifier(rules)
    work = stack.enter_context(Work(WorkRequest(module, folder, task, arguments.measure, gpu.readers, data), host))
    window = SweepWindow(certifier, interrupts, screen, as_json=arguments.json)
    stack.callback(window.close)
    sweep = Sweep(certifier, work, counter, pace, seed, look=window.look, tell=window.pair, say=window.say)
    began = time.monotonic()
    try:
        sweep.run()
    except Interrupted as why:
        work.end()
        window.verdict()
        window.say(f"stopped by {why}: nothing is certified, and no certificate is written")
        return COULD_NOT_TELL
    window.verdict()
    how = certificate.How(counter.kind, work.source_name, arguments.measure, pace.window_s, pace.settle_s)
    document = certificate.document(
        certifier, host=machine, work=facts, how=how, made=time.time(), took_s=time.monotonic() - began, seed=seed,
        program=arguments.program,
    )  # fmt: skip
    _write(out, document)
    window.close()
    end = f"{sweep_view.end_line(certifier)}; in {out}"
    if arguments.json:
        screen.say(end)
        write_lines([json.dumps(document, allow_nan=False)])
    else:
        write_lines([end])
    return _exit(certifier)


class SweepWindow:
    """Where a sweep is shown: a line that is redrawn on a terminal, verdicts that stay, pairs as documents."""

    def __init__(self, certifier: Certifier, interrupts: Interrupts, screen: Screen, *, as_json: bool) -> None:
        self._certifier = certifier
        self._interrupts = interrupts
        self._screen = screen
        self._json = as_json
        self._live = LiveText()
        self._began = self._shown = time.monotonic()
        self._told = 0

    def look(self) -> None:
        """Look up: show how it stands. Raises `Interrupted` when somebody wants no more."""
        if self._interrupts.count:
            raise Interrupted(self._interrupts.name)
        now = time.monotonic()
        if self._live.on and now - self._shown >= 0.5:
            self._shown = now
            with contextlib.suppress(OSError):
                self._live(sweep_view.live(self._certifier, now - self._began))

    def pair(self, pair: Pair) -> None:
        """Hear of a pair of windows."""
        if self._json:
            write_lines([json.dumps({"level": pair.level, "pair": certificate.pair_document(pair)}, allow_nan=False)])
        why = sweep_view.pair_line(pair)
        if why is not None:
            self.say(why)
        if self._certifier.now.over:
            self.verdict()

    def verdict(self) -> None:
        """Say what came of the levels that are over, each once."""
        for test in self._certifier.tests[self._told :]:
            if test.pairs:
                self.say(sweep_view.verdict_line(test))
        self._told = len(self._certifier.tests)

    def say(self, text: str) -> None:
        """Say something that stays."""
        self.close()
        self._screen.say(text)

    def close(self) -> None:
        """Take the line away."""
        with contextlib.suppress(OSError):
            self._live.clear()


def _exit(found: Certifier) -> int:
    if found.level is not None:
        return YES
    told = bool(found.tests) and all(test.verdict in ("harms", "close") for test in found.tests)
    return NO if told else COULD_NOT_TELL


def _may_be_certified(module: Module) -> None:
    if not module.throttles:
        raise UsageError(
            "oarbank-module.toml: /runner: must declare cooperative_throttle and a gpu use, or it never gets a duty;"
            " found neither or one. There is no level to certify."
        )


def _counter(given: str) -> Progress:
    counter = progress(given)
    first = counter.read()
    if first.value is None:
        raise UsageError(f"--progress: {first.fault}. Give @FILE, or a command that prints one number that only grows.")
    return counter


def _must_read() -> None:
    """Raise `HostFault` where no reader of this machine can read."""
    try:
        found: Sequence[GpuReader] = gpu.readers()
    except gpu.UnknownReader as exc:
        raise UsageError(str(exc)) from None
    hindrances = [(reader.name, reader.hindrance()) for reader in found]
    for reader in found:
        reader.close()
    if not found or all(why for _, why in hindrances):
        whys = "; ".join(f"{name}: {why.reason.rstrip('.')}" for name, why in hindrances if why) or "there is no reader"
        raise HostFault(
            f"--measure gpu: GPU time must be readable here; {whys}. Use --measure cpu where the units run on the CPU."
        )


def _out(given: str | None, module: Module, stage: str | None) -> Path:
    path = Path(given) if given else Path(f"{module.short}-{stage or 'job'}-level.json")
    folder = path.parent
    try:
        there, writable = path.exists(), folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    except (OSError, ValueError) as exc:
        raise UsageError(f"--out {path}: must be a file that can be made; {exc}. Give another.") from None
    if there:
        raise UsageError(f"--out {path}: must not be there yet; found it. Give another, or move it away.")
    if not writable:
        raise UsageError(f"--out {path}: must be in a folder to write in; found {folder} is none. Give another.")
    return path


def _write(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, allow_nan=False, indent=1) + "\n"
    verdict = judge(certificate.KIND, text)
    if not verdict.valid:
        raise HostFault(f"{verdict.faults[0].line(str(path))}. It is not written. Report it.")
    try:
        replace_text(path, text)
    except OSError as exc:
        if sys.stdout is not None:
            write_lines([json.dumps(document, allow_nan=False)])
        why = exc.strerror or exc
        raise HostFault(f"{path}: the certificate must be written; {why}. It is on standard output instead.") from None
