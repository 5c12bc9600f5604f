"""The loop: prompts in, completions out, each stretch of device work one unit under the duty.

The engine, the governor, the control document, the sink and the clock are given. Between any two units there is a safe
point. A prompt that fails gets a completion that says why, and the next one is run; only a stop, a lack of memory
and a sink that cannot be written to end a batch early.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from oarbank_llmserve.chunks import Chunks
from oarbank_llmserve.engines import Engine, EngineError, OutOfMemory, PromptFault, end_of
from oarbank_llmserve.job import Job
from oarbank_llmserve.sink import Completion
from oarbank_llmserve.text import TextStream


class Governor(Protocol):
    """What the loop needs of `oarbank_sdk.duty.Duty`."""

    @property
    def duty(self) -> float | None: ...
    def unit(self, label: str | None = None) -> AbstractContextManager[Any]: ...
    def scale(self, label: str | None = None) -> float: ...


class Steering(Protocol):
    """What the loop needs of `oarbank_sdk.control.Control`."""

    @property
    def threads(self) -> int | None: ...
    def safe_point(self) -> None: ...


class Sink(Protocol):
    """Where completions go."""

    def put(self, completion: Completion) -> None: ...


@dataclass(slots=True)
class Totals:
    """What a batch came to."""

    prompts: int = 0
    failed: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
    units: int = 0
    busy_s: float = 0.0  # inside units
    longest_unit_s: float = 0.0
    first_error: str | None = None

    def count(self, completion: Completion) -> None:
        """One prompt more."""
        self.prompts += 1
        self.tokens += completion.tokens
        self.prompt_tokens += completion.prompt_tokens
        if completion.error is not None:
            self.failed += 1
            self.first_error = self.first_error or completion.error


class Batch:
    """One job on one engine. `progress` is called after each token and prompt with (prompts done, tokens)."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        duty: Governor,
        ctl: Steering,
        *,
        clock: Callable[[], float] = time.perf_counter,
        progress: Callable[[int, int], None] = lambda prompts, tokens: None,
    ) -> None:
        self.totals = Totals()
        self.prompts = len(job.prompts)
        self._job = job
        self._engine = engine
        self._duty = duty
        self._ctl = ctl
        self._clock = clock
        self._progress = progress
        self._threads: int | None = None
        self._prompts: list[list[int] | str] = []  # tokens, or why there are none
        self._room = 0
        self._written: _Written | None = None

    @property
    def unfinished_tokens(self) -> int | None:
        """How many tokens the prompt in flight has; None between prompts. For whoever ends a batch early."""
        return None if self._written is None else self._written.tokens

    def prepare(self) -> None:
        """Tokenize all prompts, then make room for the longest: part of the load, before the first phase."""
        for prompt in self._job.prompts:
            self._ctl.safe_point()
            try:
                self._prompts.append(_fenced(self._engine.tokenize, prompt))
            except PromptFault as fault:
                self._prompts.append(str(fault))
        longest = max((len(tokens) for tokens in self._prompts if not isinstance(tokens, str)), default=1)
        self._ctl.safe_point()
        with self._duty.unit("load"):
            self._apply_threads()
            self._room = self._engine.reserve(longest + self._job.max_tokens)

    def run(self, sink: Sink) -> Totals:
        """Complete every prompt, in order. Raises the control module's `Stopped`, and `OutOfMemory`."""
        chunks = Chunks(self._engine.full_chunk)
        for index, tokens in enumerate(self._prompts):
            self._ctl.safe_point()
            completion = self._complete(index, tokens, chunks)
            sink.put(completion)
            self.totals.count(completion)
            self._written = None
            self._progress(self.totals.prompts, self.totals.tokens)
        return self.totals

    def _complete(self, index: int, tokens: list[int] | str, chunks: Chunks) -> Completion:
        if isinstance(tokens, str):
            return Completion(index, "", 0, 0, "error", tokens)
        if len(tokens) > self._room:
            error = f"the prompt has {len(tokens)} tokens, and the model takes {self._room} at most"
            return Completion(index, "", 0, len(tokens), "error", error)
        self._written = written = _Written(self._job)
        try:
            token = self._prefill(tokens, chunks)
            room = self._room - len(tokens)
            while not written.ends_with(token, self._engine, room):
                self._progress(self.totals.prompts, self.totals.tokens + written.tokens)
                token = self._unit("decode", self._engine.step, token)
        except PromptFault as fault:
            return Completion(index, written.all(), written.tokens, len(tokens), "error", str(fault))
        return Completion(index, written.all(), written.tokens, len(tokens), written.finish)

    def _prefill(self, tokens: list[int], chunks: Chunks) -> int:
        done = 0
        while True:
            left = len(tokens) - done
            size = chunks.size(left, self._duty.scale("prefill"), governed=self._duty.duty is not None)
            before_s = self.totals.busy_s
            chunk = tokens[done : done + size]
            token = self._unit("prefill", self._engine.prefill, chunk, first=done == 0, last=size == left)
            chunks.took(size, self.totals.busy_s - before_s)
            done += size
            if size == left:
                return token

    def _unit(self, label: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self._ctl.safe_point()
        with self._duty.unit(label):
            began_s = self._clock()
            try:
                self._apply_threads()  # inside, so that a change in the idle holds for this very unit
                return _fenced(call, *args, **named)
            finally:
                unit_s = self._clock() - began_s
                self.totals.units += 1
                self.totals.busy_s += unit_s
                self.totals.longest_unit_s = max(self.totals.longest_unit_s, unit_s)

    def _apply_threads(self) -> None:
        if self._ctl.threads != self._threads:
            self._threads = self._ctl.threads
            self._engine.set_threads(self._threads)


class _Written:
    """The text of one completion, and why it ended."""

    def __init__(self, job: Job) -> None:
        self.tokens = 0
        self.finish = ""
        self._most = job.max_tokens
        self._stream = TextStream(job.stop)
        self._parts: list[str] = []

    def ends_with(self, token: int, engine: Engine, room: int) -> bool:
        """Take the next token; True when it is the last. `room` is what the model holds after the prompt."""
        if _fenced(engine.is_end, token):
            self.finish = "end"
            return True
        self.tokens += 1
        self._parts.append(self._stream.feed(_fenced(engine.piece, token)))
        if self._stream.stopped:
            self.finish = "stop"
        elif self.tokens >= self._most:
            self.finish = "length"
        elif self.tokens > room:
            self.finish = "context"
        return self.finish != ""

    def all(self) -> str:
        """The text so far."""
        self._parts.append(self._stream.end())
        return "".join(self._parts)


def _fenced(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """The engine's answer. Whatever goes wrong in it is this prompt's fault, unless it is a lack of memory."""
    try:
        return call(*args, **named)
    except EngineError:
        raise
    except MemoryError:
        raise OutOfMemory("out of memory") from None
    except Exception as fault:  # the one fence of this program: a batch outlives its prompts
        raise PromptFault(f"{type(fault).__name__}: {end_of(fault)}") from fault
