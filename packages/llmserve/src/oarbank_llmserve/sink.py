"""Completions to a file, one JSON object a line, in the order of the prompts.

A line is flushed as soon as those before it are there, into a file that nobody takes for a result; `finish` gives it
its name at once. So whoever finds `completions.jsonl` finds all of it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType


@dataclass(frozen=True, slots=True)
class Completion:
    """What became of one prompt."""

    index: int
    text: str
    tokens: int  # new ones
    prompt_tokens: int
    finish: str  # end (the model's), stop (a stop string), length (max_tokens), context (the model is full), error
    error: str | None = None

    def line(self, named: str | int | None = None) -> bytes:
        """The JSON line, with its line feed; `named` is the caller's id, where there is one."""
        fields: dict[str, str | int] = {} if named is None else {"id": named}
        fields |= {
            "index": self.index,
            "text": self.text,
            "tokens": self.tokens,
            "prompt_tokens": self.prompt_tokens,
            "finish": self.finish,
        }
        if self.error is not None:
            fields["error"] = self.error
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class JsonlSink:
    """Writes `path`; completions may come in any order, each index once, from 0. `ids` are the prompts'."""

    def __init__(self, path: Path, ids: Sequence[str | int | None] = ()) -> None:
        self.digest = hashlib.sha256()  # of the bytes written
        self.path = path
        self._part = path.with_name(f"{path.name}.part")
        self._file = self._part.open("wb")
        self._ids = ids
        self._early: dict[int, Completion] = {}
        self._next = 0

    def put(self, completion: Completion) -> None:
        """Write it, or hold it until those before it came. OSError when the disk is full."""
        self._early[completion.index] = completion
        while (ready := self._early.pop(self._next, None)) is not None:
            line = ready.line(self._ids[ready.index] if self._ids else None)
            self._file.write(line)
            self.digest.update(line)
            self._next += 1
        self._file.flush()

    def finish(self) -> None:
        """All are there: give the file its name. ValueError when one is missing."""
        if self._early:
            raise ValueError(f"completion {self._next} is missing")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._part, self.path)

    def __enter__(self) -> JsonlSink:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
