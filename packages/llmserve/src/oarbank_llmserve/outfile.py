"""`--out FILE`: completions in a file, and what is done kept when a person ends the command half-way.

While it runs, finished prompts are in `FILE.unfinished`, as a ledger whose first line says what decided them. The same
command again goes on with the others; another one is refused, never mixed in. FILE appears at the end, whole and in
the order of the prompts.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

from oarbank_llmserve.ledger import Ledger
from oarbank_llmserve.sink import Completion, JsonlSink


class NotOurs(Exception):
    """One line for a person: why nothing is written."""


class OutFile:
    """A keeper and a sink for one command; `key` says what decides its texts. Raises `NotOurs` and OSError."""

    def __init__(self, path: Path, key: str, ids: list[str | int | None]) -> None:
        self.path = path
        self.unfinished = path.with_name(f"{path.name}.unfinished")
        self._check(key)
        self._ledger = Ledger(self.unfinished, len(ids), durable=True, quiet=True)
        if self._ledger.fault is not None:
            raise OSError(0, self._ledger.fault)
        self.found = self._ledger.found
        self._ids = ids
        self._done: list[Completion] = []

    def _check(self, key: str) -> None:
        if os.path.lexists(self.path):  # a link that leads nowhere is somebody's, too
            raise NotOurs(f"--out: must be a new file; found {self.path}. Name another, or remove it")
        first = f"{json.dumps({'unfinished': 1, 'key': key})}\n".encode()
        if self.unfinished.exists():
            with self.unfinished.open("rb") as file:
                found = file.readline(4096)
            if found == first:
                return
            if found.endswith(b"\n"):
                raise NotOurs(
                    f"--out: must go on with the command that {self.unfinished} is of; its prompts, model or settings "
                    "were others. Name another file, or remove that one"
                )
        self.unfinished.write_bytes(first)

    def put(self, completion: Completion) -> None:
        """Keep a finished prompt. Raises OSError once the disk takes no more: what is kept stays."""
        self._ledger.put(completion)
        if self._ledger.fault is not None:
            raise OSError(28, self._ledger.fault)

    def take(self, completion: Completion) -> None:
        """A completion of this command or of the one before, to be written at the end."""
        self._done.append(completion)

    def finish(self) -> None:
        """Write the whole file, then drop what was kept."""
        with JsonlSink(self.path, self._ids) as sink:
            for completion in self._done:
                sink.put(completion)
            sink.finish()
        self._ledger.remove()

    def __enter__(self) -> OutFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._ledger.close()
