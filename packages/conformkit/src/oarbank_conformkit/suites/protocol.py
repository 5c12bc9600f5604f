"""Speak the module protocol with the coordinator: everything twice in one process, and once more in a fresh one.

What the answers mean is decided in `judge.protocol`.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from oarbank_agent_check.jobs.coordinator_process import OUR_ENVIRONMENT, Pipes, Talk
from oarbank_agent_check.jobs.environment import doctor_environment
from oarbank_agent_check.jobs.module import argv
from oarbank_agent_check.jobs.runner_process import StartRefused
from oarbank_conformkit.checks import timed
from oarbank_conformkit.evidence_protocol import REQUIRED, UNKNOWN_METHOD, Answer, Ask, ProtocolSeen, asked
from oarbank_conformkit.judge.protocol import judge_protocol
from oarbank_conformkit.steps import ProtocolStep
from oarbank_conformkit.suites.bench import Bench
from oarbank_conformkit.suites.outcome import Outcome
from oarbank_conformkit.workdir import Scratch


def run(bench: Bench, step: ProtocolStep) -> Outcome:
    """Talk with it."""
    began = time.monotonic()
    seen = ProtocolSeen()
    try:
        with _talk(bench, step) as talk:
            _first(bench, step, talk, seen)
        if seen.start is not None and seen.silent is None:
            with _talk(bench, step) as talk:
                _second(bench, step, talk, seen)
    except StartRefused as exc:
        seen.refused = str(exc)
    checks = judge_protocol(bench.module, step, bench.fixtures, seen)
    return Outcome(timed(checks, time.monotonic() - began))


@contextmanager
def _talk(bench: Bench, step: ProtocolStep) -> Generator[Talk]:
    told = step.coordinator
    with Scratch(name="oarbank-conform") as scratch:
        pipes = Pipes(scratch.root)
        usual = doctor_environment(bench.module, bench.host, data=str(scratch.data), grants=str(scratch.root))
        env = {name: usual[name] for name in OUR_ENVIRONMENT} | dict(told.env)
        command = pipes.command(argv(told.exec, str(bench.bundle), bench.host.python))
        try:
            with bench.started(command, env, bench.bundle, scratch) as process:
                yield Talk(process, pipes)
        finally:
            pipes.close()


def _asker(step: ProtocolStep, talk: Talk, seen: ProtocolSeen) -> Ask:
    def ask(method: str, params: Mapping[str, Any]) -> Answer:
        limit_s = step.coordinator.timeout_s(method)
        answer = talk.ask(method, params, limit_s)
        if answer.missing is not None:
            seen.silent = seen.silent or answer.missing
        return answer

    return ask


def _first(bench: Bench, step: ProtocolStep, talk: Talk, seen: ProtocolSeen) -> None:
    """The process that is asked everything, and everything twice."""
    ask = _asker(step, talk, seen)
    seen.start = ask("initialize", _hello(bench, [1]))
    if seen.start.missing is None:
        talk.tell("initialized")
        seen.bare = {verb: ask(verb, {}) for verb in REQUIRED}
        seen.unknown = ask(UNKNOWN_METHOD, {})
        seen.first = list(asked(bench.fixtures, step, ask))
        seen.again = [ask(one.method, one.params) for one in seen.first]
    _end(bench, talk, seen)


def _second(bench: Bench, step: ProtocolStep, talk: Talk, seen: ProtocolSeen) -> None:
    """A fresh process: it is asked too early, with a version that nobody shares, and then for the same again."""
    ask = _asker(step, talk, seen)
    seen.early = ask("params.check", {"params": {}})
    seen.stranger = ask("initialize", _hello(bench, [99]))
    if ask("initialize", _hello(bench, [1])).result is not None:
        talk.tell("initialized")
        seen.afresh = [ask(one.method, one.params) for one in seen.first]
    _end(bench, talk, seen)


def _hello(bench: Bench, versions: list[int]) -> dict[str, Any]:
    host = {"name": "oarbank", "version": "2.10.0", "capabilities": [], "platform": bench.host.platform}
    settings = {} if bench.fixtures is None else dict(bench.fixtures.settings)
    return {"protocol_versions": versions, "host": host, "settings": settings}


def _end(bench: Bench, talk: Talk, seen: ProtocolSeen) -> None:
    if seen.silent is None:
        talk.tell("shutdown")
        told = time.monotonic()
        talk.pipes.end_input()
        ended = talk.process.wait(bench.limits.shutdown_s)
        after_s = None if ended is None else max(ended.at - told, 0.0)
        seen.ended.append((after_s, None if ended is None else ended.code))
    talk.drain()
    seen.noises += talk.noises
    seen.noise += talk.noise
    seen.stderr = talk.process.stderr_tail() or seen.stderr
