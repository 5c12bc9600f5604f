"""What is finished of a job, kept where the next attempt finds it: one file a job in the module's data directory.

A completion is appended in one write as soon as it is there, so a runner that is killed loses what was in flight and
nothing else. A file is named by the key of what decides its texts: prompts, sampling, the model's digest, the
backend's versions. So a ledger of another model or version is never taken for this one, and needs no check. Failed
prompts are not kept: the next attempt asks again.

The file goes when the job's result is written. One whose job never came back goes after `KEPT_S`, and the oldest go
when all together hold more than `KEPT_BYTES`. A disk that takes no more ends the ledger, never the job.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.sink import Completion
from oarbank_sdk import canonical

FOLDER = "ledger"
KEPT_S = 7 * 86_400.0
KEPT_BYTES = 256 * 1024 * 1024
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would turn line feeds into two bytes
_MOST = 1 << 31  # tokens of anything: a larger number was written by nobody here
_FINISHES = ("end", "stop", "length", "context")


def key(job: Job, backend: str, model_digest: str | None, versions: Mapping[str, str]) -> str:
    """The name of what decides a job's texts, 64 hex digits. How fast it runs, and in what slices, is left out."""
    decides = {
        "ledger": 1,
        "stage": job.stage,
        "prompts": [_decides(prompt) for prompt in job.prompts],
        "backend": backend,
        "model": model_digest,
        "versions": dict(versions),
    }
    return canonical.sha256(decides)


def _decides(prompt: Prompt) -> dict[str, Any]:
    messages = None if prompt.messages is None else [dict(message) for message in prompt.messages]
    sampling = {name: getattr(prompt, name) for name in ("temperature", "top_p", "top_k", "min_p", "seed")}
    return {
        "text": prompt.text,
        "messages": messages,
        "id": prompt.id,
        "max_tokens": prompt.max_tokens,
        "stop": list(prompt.stop),
        **sampling,
    }


class Ledger:
    """The ledger at `path` for `prompts` prompts; `found` is what earlier attempts finished, by index.

    `durable`: each line outlives a loss of power, too. `quiet`: `fault` says why nothing is kept, and stderr does not.
    """

    def __init__(self, path: Path, prompts: int, *, durable: bool = False, quiet: bool = False) -> None:
        self.path = path
        self.found: dict[int, Completion] = {}
        self.fault: str | None = None  # why nothing is kept from here on
        self._durable = durable
        self._quiet = quiet
        self._file: int | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _BINARY, 0o644)
            self._read(prompts)
        except OSError as fault:
            self._end(fault)

    def put(self, completion: Completion) -> None:
        """Keep a finished prompt; a failed one is left out. Never raises."""
        if self._file is None or completion.error is not None:
            return
        left = memoryview(completion.line())
        try:
            while left:  # a disk that takes a part of it says why at the rest
                left = left[os.write(self._file, left) :]
            if self._durable:
                os.fsync(self._file)
        except OSError as fault:
            self._end(fault)

    def close(self) -> None:
        """Keep the file for the next attempt. Again: nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """The job has its result: the file goes."""
        self.close()
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _read(self, prompts: int) -> None:
        """Take what is whole, and cut off what a kill left of the last line: the next one must begin a line."""
        assert self._file is not None
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.ftruncate(self._file, whole)
        for line in data[:whole].splitlines():
            completion = parse(line, prompts)
            if completion is not None:
                self.found.setdefault(completion.index, completion)

    def _end(self, fault: OSError) -> None:
        self.fault = fault.strerror or str(fault)
        if not self._quiet:
            with contextlib.suppress(OSError):  # stderr may lie on the same disk
                print(f"{self.path}: finished prompts are not kept from here on; {self.fault}", file=sys.stderr)
        self.close()


def parse(line: bytes, prompts: int) -> Completion | None:
    """The completion in a line of a ledger; None for anything else, which is then run again."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or fields.get("finish") not in _FINISHES or "error" in fields:
        return None
    text, numbers = fields.get("text"), [fields.get(name) for name in ("index", "tokens", "prompt_tokens")]
    counts = [number for number in numbers if type(number) is int and 0 <= number <= _MOST]
    if not isinstance(text, str) or not _is_text(text) or len(counts) != len(numbers) or counts[0] >= prompts:
        return None
    return Completion(counts[0], text, counts[1], counts[2], fields["finish"])


def _is_text(text: str) -> bool:
    """JSON can write half of a surrogate pair, and no file takes it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def clear_old(folder: Path, now_s: float, keep: Iterable[Path] = ()) -> None:
    """Remove ledgers that nobody came back for: by their age, then the oldest of too many. `now_s` as file times."""
    spared = set(keep)
    ages: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.glob("*.jsonl"):
            with contextlib.suppress(OSError):
                stat = path.stat()
                ages.append((stat.st_mtime, stat.st_size, path))
    room = KEPT_BYTES
    for written_s, size, path in sorted(ages, reverse=True):
        room -= size
        if path not in spared and (room < 0 or now_s - written_s > KEPT_S):
            with contextlib.suppress(OSError):
                path.unlink()
