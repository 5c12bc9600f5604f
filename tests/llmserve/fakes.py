"""A scripted engine, a governor and a control document on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from oarbank_llmserve.engines import PromptFault
from oarbank_llmserve.sink import Completion


class VirtualClock:
    """Starts at an odd moment and moves by one tick at every read."""

    def __init__(self, tick_s: float = 1e-6) -> None:
        self.now_s = 7.000_001
        self._tick_s = tick_s

    def __call__(self) -> float:
        self.now_s += self._tick_s
        return self.now_s


class FakeControl:
    """Control as the loop sees it; `at[n]` is called at the n-th safe point, counted from 1."""

    def __init__(self, at: dict[int, Callable[[FakeControl], None]] | None = None) -> None:
        self.threads: int | None = None
        self.safe_points = 0
        self._at = at or {}

    def safe_point(self) -> None:
        self.safe_points += 1
        if self.safe_points in self._at:
            self._at[self.safe_points](self)


class FakeDuty:
    """Idles b(1-d)/d of virtual time before the next unit; `at_entry` is called in each idle."""

    def __init__(self, clock: VirtualClock, duty: float | None = None, scale: float = 1.0) -> None:
        self.duty = duty
        self.units: list[tuple[str | None, float]] = []  # label, seconds
        self.open = False
        self.at_entry: Callable[[int], None] = lambda entered: None
        self._clock = clock
        self._scale = scale
        self._owed_s = 0.0
        self._entered = 0

    def scale(self, label: str | None = None) -> float:
        return self._scale

    @contextmanager
    def unit(self, label: str | None = None) -> Iterator[None]:
        assert not self.open, "units must not nest"
        self._entered += 1
        self.at_entry(self._entered)
        self._clock.now_s += self._owed_s
        began_s, self.open = self._clock.now_s, True
        try:
            yield
        finally:
            self.open = False
            busy_s = self._clock.now_s - began_s
            self.units.append((label, busy_s))
            self._owed_s = busy_s * (1 - self.duty) / self.duty if self.duty else 0.0


@dataclass
class ScriptedEngine:
    """Says `script[prompt]`, piece by piece; a piece that is an exception is raised instead.

    A prompt's tokens are as many as its characters. Device calls must come inside a unit.
    """

    script: dict[str, Sequence[bytes | Exception]]
    duty: FakeDuty
    clock: VirtualClock
    room: int = 10_000
    token_s: float = 0.001
    step_s: float = 0.010
    full_chunk: int = 64
    threads: list[int | None] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    steps: int = 0
    reserved: int = 0
    _reading: list[int] = field(default_factory=list)
    _pieces: list[bytes | Exception] = field(default_factory=list)

    def tokenize(self, text: str) -> list[int]:
        if text not in self.script:
            raise PromptFault("the prompt has no tokens")
        return [ord(character) for character in text]

    def reserve(self, tokens: int) -> int:
        self._on_device(0.5)
        self.reserved = tokens
        return min(tokens, self.room)

    def prefill(self, tokens: Sequence[int], *, first: bool, last: bool) -> int | None:
        self._on_device(len(tokens) * self.token_s)
        assert len(tokens) <= self.full_chunk
        self.chunks.append(len(tokens))
        self._reading = [*([] if first else self._reading), *tokens]
        if not last:
            return None
        self._pieces = list(self.script["".join(map(chr, self._reading))])
        return self._say(0)

    def step(self, token: int) -> int:
        self._on_device(self.step_s)
        self.steps += 1
        return self._say(token + 1)

    def _say(self, index: int) -> int:
        piece = self._pieces[index] if index < len(self._pieces) else b""
        if isinstance(piece, Exception):
            raise piece
        return index

    def _on_device(self, seconds: float) -> None:
        assert self.duty.open, "device work must be inside a unit"
        self.clock.now_s += seconds

    def piece(self, token: int) -> bytes:
        piece = self._pieces[token]
        assert isinstance(piece, bytes)
        return piece

    def is_end(self, token: int) -> bool:
        return token >= len(self._pieces)

    def set_threads(self, threads: int | None) -> None:
        assert self.duty.open
        self.threads.append(threads)

    def close(self) -> None:
        pass


class ListSink(list[Completion]):
    """Keeps completions."""

    def put(self, completion: Completion) -> None:
        self.append(completion)
