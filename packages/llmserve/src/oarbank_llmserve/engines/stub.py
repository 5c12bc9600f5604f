"""The stand-in model: a walk through a list of words, decided by integers alone.

It certifies the module on nodes without a backend, so its text must be the same on every platform, in every locale,
with any number of CPUs, however a prompt is cut into units and whoever else is in the batch. And it must cost real CPU
time, because a duty over units of no length proves nothing: about 7 ms for each sequence's token (2 GHz Xeon, Python
3.11). Time decides where it breathes, never what it says. It is no language model: of a sampler it takes the seed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from oarbank_llmserve.engines import Live, Options, PromptFault, Room, Sampler, Slicing, StepGivenUp

ROUNDS_A_TOKEN = 100_000  # about 7 ms; 3 ms on a machine more than twice as fast
ROUNDS_A_PROMPT_TOKEN = 3_000
ROUNDS_AT_ONCE = 2_000  # 0.15 ms: as fine as slices are cut
MOST_SLOTS = 2  # as few as make a batch: nothing is gained by more, and a step is a unit of 14 ms
ROOM = 1 << 20  # tokens: no prompt and completion that a job may hold are longer

_MODULUS = 2_147_483_647  # prime, and small enough that each product stays a fast integer
_FACTOR = 48_271
_WORDS = (
    *(b"the ", b"river ", b"keeps ", b"its ", b"share ", b"of ", b"light, ", b"and ", b"nobody ", b"minds. "),
    *(b"A ", b"slow ", b"boat ", b"waits ", b"until ", b"evening; ", b"then ", b"it ", b"moves ", b"on.\n"),
)
# Words in two tokens that split a character, so that whoever joins tokens to text is put to the test.
_SPLIT = (b"na\xc3", b"\xafve ", b"Stra\xc3", b"\x9fe ", b"\xe6\x9d", b"\xb1 ", b"\xf0\x9f\x8c", b"\x8a ")
_PIECES = _WORDS + _SPLIT
_STARTS = tuple(range(len(_WORDS))) + tuple(range(len(_WORDS), len(_PIECES), 2))


def device() -> str:
    """Where units run."""
    return "cpu"


def versions() -> dict[str, str]:
    """Nothing but ourselves."""
    return {}


def open_engine(options: Options) -> Stub:
    """A stand-in; it needs no model."""
    return Stub()


class Stub:
    """See `oarbank_llmserve.engines.Engine`."""

    full_chunk = 32  # tokens, about 7 ms
    steps_last_token = False

    def __init__(self) -> None:
        self._states: dict[int, int] = {}  # of each slot in use

    def tokenize(self, text: str) -> list[int]:
        """The text's bytes."""
        if not text:
            raise PromptFault("the prompt is empty")
        return list(text.encode())

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Who says what, a message a line."""
        return self.tokenize("".join(f"{message['role']}: {message['content']}\n" for message in messages))

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        """Everything fits."""
        self._states.clear()
        return Room(min(slots, MOST_SLOTS), ROOM)

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        """Fold the prompt's bytes into the state, one by one."""
        work = _Work(slicing)
        state = 1 if first else self._states[slot]
        for token in tokens:
            state = work.turn(state + token + 1, ROUNDS_A_PROMPT_TOKEN)
        self._states[slot] = state
        return None if last is None else _pick(state, last)

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        """The words that follow; the second half where a word was begun."""
        work = _Work(slicing)
        states = [work.turn(self._states[one.slot] + one.token + 1, ROUNDS_A_TOKEN) for one in live]
        self._states.update((one.slot, state) for one, state in zip(live, states, strict=True))
        return [_follows(one, state) for one, state in zip(live, states, strict=True)]

    def drop(self, slot: int) -> None:
        """Forget its state."""
        self._states.pop(slot, None)

    def piece(self, token: int) -> bytes:
        """The token's bytes."""
        return _PIECES[token]

    def is_end(self, token: int) -> bool:
        """Never: a task is as long as it asks to be."""
        return False

    def set_threads(self, threads: int | None) -> None:
        """One thread is all there ever is."""

    def close(self) -> None:
        """Nothing to give back."""


class _Work:
    """The rounds of one call, cut into slices where somebody asks for them."""

    def __init__(self, slicing: Slicing | None) -> None:
        self._slicing = slicing
        self._began_s = time.perf_counter()

    def turn(self, state: int, rounds: int) -> int:
        """`state`, so many rounds on. Raises `StepGivenUp`."""
        if self._slicing is None:
            return _turn(state, rounds)
        for done in range(0, rounds, ROUNDS_AT_ONCE):
            state = _turn(state, min(ROUNDS_AT_ONCE, rounds - done))
            if time.perf_counter() - self._began_s > 0.8 * self._slicing.longest_s:
                if not self._slicing.breathe():
                    raise StepGivenUp
                self._began_s = time.perf_counter()
        return state


def _follows(one: Live, state: int) -> int:
    if one.token >= len(_WORDS) and (one.token - len(_WORDS)) % 2 == 0:
        return one.token + 1
    return _pick(state, one.sampler)


def _pick(state: int, sampler: Sampler) -> int:
    chosen = state if sampler.greedy else _turn(state + sampler.seed % _MODULUS, 3)
    return _STARTS[chosen % len(_STARTS)]


def _turn(state: int, rounds: int) -> int:
    for _ in range(rounds):
        state = state * _FACTOR % _MODULUS
    return state
