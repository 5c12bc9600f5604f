"""One attempt at a job, between the loop and what is kept of it: earlier attempts' prompts are not run again. Pure.

The batch runs the prompts that are left, under numbers of its own; here each completion gets its number in the job
back, is made durable, then handed on and counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from oarbank_llmserve.job import Job
from oarbank_llmserve.result import Counts
from oarbank_llmserve.sink import Completion


class Keeper(Protocol):
    """Where finished prompts are kept for the next attempt."""

    @property
    def found(self) -> Mapping[int, Completion]: ...
    def put(self, completion: Completion) -> None: ...


class Sink(Protocol):
    """Where completions go, in any order."""

    def put(self, completion: Completion) -> None: ...


class Attempt:
    """A sink for the loop, once it has begun. `kept` holds what earlier attempts finished."""

    def __init__(self, job: Job, kept: Keeper | None) -> None:
        self.job = job
        self.found = {} if kept is None else dict(kept.found)
        self.left = [index for index in range(len(job.prompts)) if index not in self.found]
        self.counts = Counts()
        self.texts: dict[int, str] = {}
        self._kept = kept
        self._sink: Sink | None = None

    @property
    def resumed(self) -> int:
        """How many prompts earlier attempts finished."""
        return len(self.found)

    def left_job(self) -> Job:
        """The prompts that are still to be run."""
        return replace(self.job, prompts=tuple(self.job.prompts[index] for index in self.left))

    def begin(self, sink: Sink) -> None:
        """From here on `sink` gets every completion; first those that earlier attempts finished."""
        self._sink = sink
        for index in sorted(self.found):
            self._take(self.found[index])

    def put(self, completion: Completion) -> None:
        """One prompt of the batch; kept before it is handed on."""
        completion = replace(completion, index=self.left[completion.index])
        if self._kept is not None:
            self._kept.put(completion)
        self._take(completion)

    def _take(self, completion: Completion) -> None:
        assert self._sink is not None
        self._sink.put(completion)
        self.counts.count(completion)
        if self.job.stage == "selftest":
            self.texts[completion.index] = completion.text

    def in_order(self) -> list[str] | None:
        """The texts, in the stage that compares them."""
        return [self.texts[index] for index in sorted(self.texts)] if self.job.stage == "selftest" else None
