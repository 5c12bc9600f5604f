"""The stand-in model: a walk through a list of words, decided by integers alone.

It certifies the module on nodes without a backend, so its text must be the same on every platform, in every locale,
with any number of CPUs and however a prompt is cut into units. And it must cost real CPU time, because a duty over
units of no length proves nothing: about 7 ms for a token (2 GHz Xeon, Python 3.11). It is no language model.
"""

from __future__ import annotations

from collections.abc import Sequence

from oarbank_llmserve.engines import Options, PromptFault

ROUNDS_A_TOKEN = 100_000  # about 7 ms; 3 ms on a machine more than twice as fast
ROUNDS_A_PROMPT_TOKEN = 3_000
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

    def __init__(self) -> None:
        self._state = 1

    def tokenize(self, text: str) -> list[int]:
        """The text's bytes."""
        if not text:
            raise PromptFault("the prompt is empty")
        return list(text.encode())

    def reserve(self, tokens: int) -> int:
        """Everything fits."""
        return ROOM

    def prefill(self, tokens: Sequence[int], *, first: bool, last: bool) -> int | None:
        """Fold the prompt's bytes into the state, one by one."""
        state = 1 if first else self._state
        for token in tokens:
            state = _turn(state + token + 1, ROUNDS_A_PROMPT_TOKEN)
        self._state = state
        return self._pick() if last else None

    def step(self, token: int) -> int:
        """The word that follows; the second half where a word was begun."""
        self._state = _turn(self._state + token + 1, ROUNDS_A_TOKEN)
        if token >= len(_WORDS) and (token - len(_WORDS)) % 2 == 0:
            return token + 1
        return self._pick()

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

    def _pick(self) -> int:
        return _STARTS[self._state % len(_STARTS)]


def _turn(state: int, rounds: int) -> int:
    for _ in range(rounds):
        state = state * _FACTOR % _MODULUS
    return state
