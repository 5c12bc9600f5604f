"""A scripted engine, a governor and a control document on virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from oarbank_llmserve.engines import Live, PromptFault, Room, Sampler, Slicing, StepGivenUp
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

    def shrink(self, scale: float) -> None:
        """What `scale` says from here on."""
        self._scale = scale

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
class _Told:
    """What a slot's sequence read, and how much it said."""

    reading: list[int] = field(default_factory=list)
    said: int = 0


@dataclass
class ScriptedEngine:
    """Says `script[prompt]`, piece by piece; a piece that is an exception is raised instead, and nothing moves.

    A prompt's tokens are as many as its characters; a token is a prompt's number and a place in its script. Device
    calls must come inside a unit. A step of n sequences takes `step_s` + n * `each_s`. `names` says whether a fault
    tells whose it is; `broken_above` makes every step of more sequences fail.
    """

    script: dict[str, Sequence[bytes | Exception]]
    duty: FakeDuty
    clock: VirtualClock
    room: int = 10_000
    slots: int = 1
    token_s: float = 0.001
    step_s: float = 0.010
    each_s: float = 0.0
    slices: int = 4  # of a call, where they are asked for
    names: bool = False
    broken_above: int = 1_000
    full_chunk: int = 64
    steps_last_token = False
    threads: list[int | None] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    steps: list[list[int]] = field(default_factory=list)  # the slots of each
    dropped: list[int] = field(default_factory=list)
    reserved: tuple[int, int, bool] = (0, 0, False)
    live: dict[int, _Told] = field(default_factory=dict)

    def tokenize(self, text: str) -> list[int]:
        if text not in self.script:
            raise PromptFault("the prompt has no tokens")
        return [ord(character) for character in text]

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        return self.tokenize("/".join(message["content"] for message in messages))

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        self._on_device(0.5, None)
        self.reserved = (slots, tokens, sliced)
        return Room(min(slots, self.slots), min(tokens, self.room))

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        assert 0 <= slot < self.slots
        assert first == (slot not in self.live), "a slot must be dropped before the next one takes it"
        assert len(tokens) <= self.full_chunk
        self._on_device(len(tokens) * self.token_s, slicing)
        self.chunks.append(len(tokens))
        told = self.live.setdefault(slot, _Told())
        told.reading += tokens
        return None if last is None else self._token(told, 0)

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        assert live
        assert len({one.slot for one in live}) == len(live)
        self._on_device(self.step_s + len(live) * self.each_s, slicing)
        self.steps.append([one.slot for one in live])
        if len(live) > self.broken_above:
            raise RuntimeError("too many at once")
        found = []
        for one in live:
            told = self.live[one.slot]
            assert one.token == self._code(told, told.said), "the newest token must be fed back"
            try:
                found.append(self._token(told, told.said + 1))
            except Exception as fault:
                raise (PromptFault(str(fault), one.slot) if self.names else fault) from None
        for one in live:
            self.live[one.slot].said += 1
        return found

    def _code(self, told: _Told, place: int) -> int:
        prompt = list(self.script).index("".join(map(chr, told.reading)))
        return prompt * 1000 + place

    def _token(self, told: _Told, place: int) -> int:
        code = self._code(told, place)
        pieces = list(self.script.values())[code // 1000]
        if place < len(pieces) and isinstance(piece := pieces[place], Exception):
            raise piece
        return code

    def _on_device(self, seconds: float, slicing: Slicing | None) -> None:
        parts = 1 if slicing is None else self.slices
        for part in range(parts):
            assert self.duty.open, "device work must be inside a unit"
            self.clock.now_s += seconds / parts
            if slicing is not None and part < parts - 1 and not slicing.breathe():
                raise StepGivenUp

    def drop(self, slot: int) -> None:
        self.live.pop(slot, None)  # a prompt may fail before its first part was read
        self.dropped.append(slot)

    def piece(self, token: int) -> bytes:
        piece = list(self.script.values())[token // 1000][token % 1000]
        assert isinstance(piece, bytes)
        return piece

    def is_end(self, token: int) -> bool:
        return token % 1000 >= len(list(self.script.values())[token // 1000])

    def set_threads(self, threads: int | None) -> None:
        assert self.duty.open
        self.threads.append(threads)

    def close(self) -> None:
        pass


class ListSink(list[Completion]):
    """Keeps completions."""

    def put(self, completion: Completion) -> None:
        self.append(completion)
