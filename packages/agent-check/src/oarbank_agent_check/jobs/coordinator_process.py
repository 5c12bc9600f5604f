"""Talk with a module's coordinator: a line out, the line that answers it in, everything else noted.

The host's side of the module protocol. The program is started and ended as a runner is, so nothing of it is left
however its starter ends; a shell ties its stdin and stdout to two named pipes in a directory of its own. Memory is
bounded: a line has a limit, and noise is counted and its beginning kept. It never judges.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oarbank_agent_check.jobs.coordinator import Answer, Coordinator
from oarbank_agent_check.jobs.environment import doctor_environment
from oarbank_agent_check.jobs.faults import HostFault
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, argv
from oarbank_agent_check.jobs.runner_process import RunnerProcess
from oarbank_agent_check.jobs.workdir import Scratch
from oarbank_sdk import strictjson
from oarbank_sdk.module_rpc import MAX_LINE, Lines, TooLong

TIED = ["/bin/sh", "-c", 'i=$1; o=$2; shift 2; exec "$@" <"$i" >"$o"', "sh"]

CHUNK = 1 << 16
NOISE_SHOWN = 160

ENDS_S = 5.0
"""How long a coordinator may take to end (module protocol: shutdown)."""

OUR_ENVIRONMENT = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "PYTHONUTF8", "OARBANK_PLATFORM")
"""What a coordinator finds beside the manifest's own variables."""


class Pipes:
    """Two named pipes in a directory, open on this side from the start so that neither side blocks the other."""

    def __init__(self, folder: Path) -> None:
        if sys.platform == "win32":
            raise HostFault("start: a coordinator is started on Linux or macOS; found Windows. Use another machine.")
        self.inward, self.outward = folder / "stdin", folder / "stdout"
        try:
            os.mkfifo(self.inward)
            os.mkfifo(self.outward)
            self.write = os.open(self.inward, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            self.read = os.open(self.outward, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as exc:
            raise HostFault(f"start: two pipes must be made in {folder}; {exc}. Free some space.") from None

    def command(self, argv: list[str]) -> list[str]:
        """Return the command that runs `argv` tied to the pipes."""
        return [*TIED, str(self.inward), str(self.outward), *argv]

    def end_input(self) -> None:
        """Close the program's stdin; again: nothing."""
        if self.write >= 0:
            os.close(self.write)
            self.write = -1

    def close(self) -> None:
        """Let go of both; again: nothing."""
        self.end_input()
        if self.read >= 0:
            os.close(self.read)
            self.read = -1


@dataclass(slots=True)
class Talk:
    """One conversation with a running coordinator."""

    process: RunnerProcess
    pipes: Pipes
    noise: list[str] = field(default_factory=list)  # what came that is no message, its beginning
    noises: int = 0
    _ids: int = 0
    _stream: Lines = field(default_factory=Lines)
    _lines: deque[bytes | TooLong] = field(default_factory=deque)
    _silent: str | None = None  # why it is asked no more

    def ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> Answer:
        """Send a request and wait for its answer; after one that did not come, the next are not sent."""
        if self._silent is not None:
            return Answer(missing=self._silent)
        self._ids += 1
        began = time.monotonic()
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}, began + limit_s)
        while (left := began + limit_s - time.monotonic()) > 0:
            message = self._message(left)
            if message is None:
                break
            if message.get("id") == self._ids and "method" not in message:
                return _answer(message, time.monotonic() - began)
            if "method" not in message:
                self._note(json.dumps(message))
        ended = self.process.wait(0.0)
        why = f"no answer to {method} in {limit_s:g} s"
        self._silent = why if ended is None else f"it ended with exit {ended.code} instead of answering {method}"
        return Answer(missing=self._silent, took_s=time.monotonic() - began)

    def tell(self, method: str) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method}, time.monotonic() + 1.0)

    def drain(self) -> None:
        """Look at what has come meanwhile, and note what is no message."""
        while self._message(0.0) is not None:
            pass

    def _send(self, message: Mapping[str, Any], until: float) -> None:
        left = memoryview(json.dumps(message).encode() + b"\n")
        while left and time.monotonic() < until and self.process.wait(0.0) is None:
            _, ready, _ = select.select([], [self.pipes.write], [], 0.05)
            if ready:
                with contextlib.suppress(BlockingIOError):
                    left = left[os.write(self.pipes.write, left[:4096]) :]

    def _message(self, limit_s: float) -> dict[str, Any] | None:
        """The next JSON-RPC message, or None in `limit_s` or at the program's end; other lines are noted."""
        until = time.monotonic() + limit_s
        while True:
            while self._lines:
                line = self._lines.popleft()
                if isinstance(line, TooLong):
                    self._note(f"a line of more than {MAX_LINE} bytes")
                elif (message := _parsed(line)) is not None:
                    return message
                elif line.strip():
                    self._note(line[:NOISE_SHOWN].decode("utf-8", errors="replace"))
            left = until - time.monotonic()
            gone = self.process.wait(0.0) is not None
            ready, _, _ = select.select([self.pipes.read], [], [], 0.0 if gone else min(max(left, 0.0), 0.05))
            if ready:
                self._lines += self._stream.feed(os.read(self.pipes.read, CHUNK))
            elif gone or left <= 0:
                return None

    def _note(self, text: str) -> None:
        self.noises += 1
        if len(self.noise) < 3:
            self.noise.append(text[:NOISE_SHOWN])


@contextmanager
def conversation(told: Coordinator, module: Module, folder: Path, host: Host) -> Generator[Talk]:
    """Start a coordinator and say hello; when the block ends it is told to, and ended.

    `folder` is the bundle's, absolute. Raises `StartRefused` where it cannot be executed, and `HostFault`.
    """
    with Scratch("oarbank-coordinator") as scratch:
        pipes = Pipes(scratch.root)
        usual = doctor_environment(module, host, data=str(scratch.data), grants=str(scratch.root))
        env = {name: usual[name] for name in OUR_ENVIRONMENT} | dict(told.env)
        command = pipes.command(argv(told.exec, str(folder), host.python))
        try:
            with RunnerProcess(command, env, folder, scratch=scratch.root) as process:
                talk = Talk(process, pipes)
                yield talk
                talk.tell("shutdown")
                pipes.end_input()
                process.wait(ENDS_S)
        finally:
            pipes.close()


def hello(host: Host) -> dict[str, Any]:
    """Return the params of `initialize`."""
    about = {"name": "oarbank", "version": "2.10.0", "capabilities": [], "platform": host.platform}
    return {"protocol_versions": [1], "host": about, "settings": {}}


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = strictjson.loads(line)
    except (strictjson.StrictJSONError, RecursionError):
        return None
    return value if isinstance(value, dict) and value.get("jsonrpc") == "2.0" else None


def _answer(message: dict[str, Any], took_s: float) -> Answer:
    error = message.get("error")
    if error is None:
        return Answer(message.get("result"), took_s=took_s)
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return Answer(code=0, message="an error without a code", took_s=took_s)
    message_ = str(error.get("message", ""))[:200]
    return Answer(code=error["code"], message=message_, data=error.get("data"), took_s=took_s)
