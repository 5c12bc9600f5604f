"""The loop: prompts in, completions out, several at a time, each stretch of device work one unit under the duty.

Prompts enter in their order as slots fall free; one step of all live sequences is a unit "decode", a part of one
prompt a unit "prefill"; a sequence that ends leaves at once. When fewer may step than are live, the oldest do: each
ends after `max_tokens` at the latest, so nobody waits for ever, and what was begun first is finished first. Completions
come as they end, which is not the order of the prompts: the sink orders them.

The engine, the governor, the control document, the sink and the clock are given. Between any two units there is a safe
point. A prompt that fails gets a completion that says why, and the others run on; only a stop, a lack of memory and a
sink that cannot be written to end a batch early.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from oarbank_llmserve.chunks import Chunks, Width
from oarbank_llmserve.engines import Engine, Live, PromptFault, Room
from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.sequence import NO_SLOT, Sequence
from oarbank_llmserve.sink import Completion
from oarbank_llmserve.units import Governor, Spell, Steering, Units, fenced

MOST_SLOTS = 32  # sequences at once; an engine gives fewer where more bring nothing


class Sink(Protocol):
    """Where completions go, in any order."""

    def put(self, completion: Completion) -> None: ...


@dataclass(slots=True)
class Totals(Spell):
    """What a batch came to."""

    prompts: int = 0
    failed: int = 0
    tokens: int = 0
    prompt_tokens: int = 0
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
    """One job on one engine. `progress` is called after each step and prompt with (prompts done, tokens)."""

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
        self._units = Units(duty, ctl, longest_s=job.longest_s, clock=clock)
        self._progress = progress
        self._prompts: list[list[int] | str] = []  # tokens, or why there are none
        self._room = Room(0, 0)
        self._live: list[Sequence] = []  # the oldest first
        self._reading: Sequence | None = None  # in prefill
        self._suspects: list[Sequence] = []  # of a step that failed: each is asked alone

    @property
    def unfinished(self) -> int:
        """How many prompts are in flight. For whoever ends a batch early."""
        return len(self._live) + (self._reading is not None)

    @property
    def unfinished_tokens(self) -> int | None:
        """How many tokens they have; None when there are no such prompts."""
        return sum(sequence.written for sequence in self._live) if self.unfinished else None

    def prepare(self) -> None:
        """Tokenize all prompts, then make room for them: part of the load, before the first phase."""
        needs = []
        for prompt in self._job.prompts:
            self._ctl.safe_point()
            try:
                self._prompts.append(tokens := _tokens(self._engine, prompt))
                needs.append(len(tokens) + prompt.max_tokens)
            except PromptFault as fault:
                self._prompts.append(str(fault))
        slots, longest = _room(needs)
        sliced = self._job.longest_s is not None
        reserve = self._engine.reserve
        try:
            self._room = self._units.run("load", reserve, slots, longest, sliced=sliced, engine=self._engine)
        except PromptFault as fault:  # no prompt has a completion here
            self._prompts = [str(fault) for _ in self._prompts]
            self._room = Room(1, 0)
        self._units.spell = self.totals

    def run(self, sink: Sink) -> Totals:
        """Complete every prompt. Raises the control module's `Stopped`, and `OutOfMemory`."""
        waiting = deque(range(self.prompts))
        free = list(reversed(range(self._room.slots)))
        chunks = Chunks(self._engine.full_chunk, self._job.longest_s)
        width = Width(self._room.slots, self._job.longest_s)
        while waiting or self._live:
            most = self._most(width)
            if waiting and free and len(self._live) < most:
                ended = self._enter(waiting.popleft(), free, chunks, width)
            else:
                ended = self._step(self._suspects[:1] or self._live[:most], width)
            for sequence in ended:
                self._leave(sequence, free)
                self._put(sequence.completion(), sink)
            self._progress(self.totals.prompts, self.totals.tokens + (self.unfinished_tokens or 0))
        return self.totals

    def _put(self, completion: Completion, sink: Sink) -> None:
        sink.put(completion)
        self.totals.count(completion)

    def _enter(self, index: int, free: list[int], chunks: Chunks, width: Width) -> list[Sequence]:
        """Read the next prompt into a free slot; the sequence itself when that was all of it."""
        tokens = self._prompts[index]
        prompt, most = self._job.prompts[index], self._room.tokens
        if isinstance(tokens, str):
            return [Sequence(index, prompt, []).fails(tokens)]
        sequence = Sequence(index, prompt, tokens)
        if len(tokens) > most:
            return [sequence.fails(f"the prompt has {len(tokens)} tokens, and the model takes {most} at most")]
        sequence.slot = free.pop()
        self._reading = sequence
        try:
            token = self._prefill(sequence, chunks, width)
        except PromptFault as fault:
            return [sequence.fails(str(fault))]
        self._reading = None
        self._live.append(sequence)
        if token is None:
            sequence.token = tokens[-1]
            return []
        return [sequence] if sequence.ends_with(token, self._engine, most) else []

    def _prefill(self, sequence: Sequence, chunks: Chunks, width: Width) -> int | None:
        """The first new token; None where the prompt's last token is left to the next step."""
        steps_last = self._engine.steps_last_token
        tokens, done = sequence.tokens[:-1] if steps_last else sequence.tokens, 0
        while True:
            left = len(tokens) - done
            scale = self._duty.scale("prefill")
            size = chunks.size(left, scale, governed=self._duty.duty is not None) if left else 0
            before_s = self.totals.busy_s
            token = self._units.run(
                "prefill",
                self._engine.prefill,
                sequence.slot,
                tokens[done : done + size],
                first=done == 0,
                last=sequence.sampler if size == left and not steps_last else None,
                slicing=self._units.slicing,
                engine=self._engine,
            )
            if size:
                chunks.took(size, self.totals.busy_s - before_s)
                width.read(size, self.totals.busy_s - before_s)
            done += size
            if size == left:
                return token

    def _most(self, width: Width) -> int:
        """How many sequences may step together."""
        # The governor's factor is not asked for before the first step: it would be a hundredth, for a probe that the
        # width makes itself.
        return width.most(self._duty.scale("decode") if width.measured else 1.0, self._duty.duty)

    def _step(self, stepping: list[Sequence], width: Width) -> list[Sequence]:
        """One step of these; those that it ended."""
        before_s = self.totals.busy_s
        live = [Live(sequence.slot, sequence.token, sequence.sampler) for sequence in stepping]
        try:
            tokens = self._units.run("decode", self._engine.step, live, self._units.slicing, engine=self._engine)
        except PromptFault as fault:
            return self._blame(stepping, fault)
        width.took(len(stepping), self.totals.busy_s - before_s)
        self._suspects = self._suspects[1:]
        pairs = zip(stepping, tokens, strict=True)
        return [sequence for sequence, token in pairs if sequence.ends_with(token, self._engine, self._room.tokens)]

    def _blame(self, stepping: list[Sequence], fault: PromptFault) -> list[Sequence]:
        """Whose fault it was: who is named, who stepped alone, or else it comes out when each does."""
        self._suspects = self._suspects[1:]
        named = [sequence for sequence in stepping if sequence.slot == fault.slot or len(stepping) == 1]
        if not named:
            self._suspects = list(stepping)
        return [sequence.fails(str(fault)) for sequence in named]

    def _leave(self, sequence: Sequence, free: list[int]) -> None:
        self._reading = None
        if sequence.slot == NO_SLOT:
            return
        self._engine.drop(sequence.slot)
        free.append(sequence.slot)
        self._live = [other for other in self._live if other is not sequence]


def _tokens(engine: Engine, prompt: Prompt) -> list[int]:
    if prompt.messages is not None:
        return fenced(engine.chat, prompt.messages)
    return fenced(engine.tokenize, prompt.text or "")


def _room(needs: list[int]) -> tuple[int, int]:
    """Slots, and the tokens of each: no more in all than the prompts need together, for the memory is somebody's."""
    longest = max(needs, default=1)
    return max(min(MOST_SLOTS, len(needs), -(-sum(needs) // longest)), 1), longest
