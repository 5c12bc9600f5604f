"""The seam between the loop and a model: what an engine does, what may go wrong, and which backends there are.

A backend is a module of this package, imported only when somebody asks for it; a missing one is a `NoBackend` with
the end of the cause and what to do. An engine is used from one thread. Each of its calls that works on the device
returns only when the device is done, so that the caller's unit ends there. To add a backend: a module of its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

NAMES = ("mlx", "llamacpp", "stub")  # in the order of preference; the stand-in is last
_EXTRAS = ("mlx", "llamacpp")  # backends whose packages an extra of ours brings


@dataclass(frozen=True, slots=True)
class Options:
    """How to open a model."""

    model: Path | None  # None: the stand-in needs none
    threads: int | None = None  # granted: CPU threads at most, whatever is asked later; None: no bound
    # Asked between load steps, with the device done; it may take its time, for a load holds the duty, too. False ends
    # the load with `LoadStopped`. It must not raise: the call may come out of a library.
    going: Callable[[], bool] = lambda: True
    memory_gb: float | None = None  # 10^9 bytes for weights and context at most; None: as much as asked for


class Sampler(Protocol):
    """Chooses one prompt's tokens, in their order; one for each prompt, so that no text depends on its neighbours."""

    @property
    def greedy(self) -> bool:
        """Always the likeliest token: the engine may take the argmax itself, and never call `pick`."""

    @property
    def seed(self) -> int:
        """What its chance begins from, 0 to 2^64-1; an engine without logits folds it into what it says."""

    def pick(self, logits: Any) -> int:
        """The next token, of a float32 numpy vector over the vocabulary, which is left alone. Each call is a draw:
        once for each token that is really taken, never for a step that was given up. `PromptFault`: no number in it.
        """


@dataclass(frozen=True, slots=True)
class Live:
    """One live sequence's next input."""

    slot: int
    token: int
    sampler: Sampler


@dataclass(frozen=True, slots=True)
class Room:
    """What `reserve` gave."""

    slots: int  # sequences at once: slots 0 to slots-1
    tokens: int  # of each, prompt and completion


# The loop's: the engine calls it between two slices, with the device done. It ends the unit, idles, holds a pause and
# begins the next unit. False: give the step up. It never raises.
Breath = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Slicing:
    """Cut a step into slices no longer than this, and breathe between them."""

    longest_s: float
    breathe: Breath


class Engine(Protocol):
    """A loaded model that continues several prompts at a time.

    A slot holds one sequence: `prefill` with `first` begins it, `drop` ends it. A call that raises anything but
    `OutOfMemory` leaves the sequences as they were before it, so that the caller may ask for each alone.
    """

    full_chunk: int  # tokens of a full-size prefill unit
    steps_last_token: bool
    """Whether a prompt's last token goes with the next step of all, for the same bits at a lower price; `prefill` then
    reads what is before it, perhaps nothing, and gives no token."""

    def tokenize(self, text: str) -> list[int]:
        """The prompt's tokens. Host work. `PromptFault` when there are none."""

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The tokens of a conversation ({"role", "content"} each) through the model's own template, up to where the
        assistant's answer begins. Host work. `PromptFault` when it has no template, or the template refuses.
        """

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        """Make room for so many sequences of so many tokens, fewer of both when the memory or the model says so, and
        warm up. `sliced`: later calls bring a `Slicing`. Again: the sequences are gone. Device work. `OutOfMemory`.
        """

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        """Read part of a prompt, `full_chunk` tokens at most; after the last part the first new token. Device work.
        `StepGivenUp` as in `step`.
        """

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        """The next token of each. Device work. `StepGivenUp` when `breathe` said False: nothing of the step remains,
        and the same call may be made again. `PromptFault` names the `slot` where it knows whose it is.
        """

    def drop(self, slot: int) -> None:
        """The sequence leaves; its cells are free."""

    def piece(self, token: int) -> bytes:
        """The token's bytes; they may end inside a character."""

    def is_end(self, token: int) -> bool:
        """Whether the model ended its text with this token."""

    def set_threads(self, threads: int | None) -> None:
        """CPU threads from the next call on at most; None: the engine chooses again."""

    def close(self) -> None:
        """Give the memory back. Again: nothing."""


class Backend(Protocol):
    """What a module of this package offers, once imported."""

    def device(self) -> str:
        """Where its units run: "gpu" or "cpu"."""

    def versions(self) -> dict[str, str]:
        """Its packages' versions, for the result."""

    def open_engine(self, options: Options) -> Engine:
        """Load the model. Device work. Raises `BadModel`, `OutOfMemory`, `LoadStopped`."""


class EngineError(Exception):
    """Something that a backend could not do; the text is one line for a person."""


class NoBackend(EngineError):
    """The backend does not load here."""


class BadModel(EngineError):
    """The model is not there, or is none that this backend opens."""


class OutOfMemory(EngineError):
    """The device or the host has no memory for it."""


class LoadStopped(EngineError):
    """`Options.going` said no."""


class PromptFault(EngineError):
    """This prompt has no completion; the next one may have. `slot` is its sequence's, where somebody knows."""

    def __init__(self, line: str, slot: int | None = None) -> None:
        super().__init__(line)
        self.slot = slot


class StepGivenUp(Exception):
    """`Slicing.breathe` said False: nothing of the step remains."""


def load(name: str) -> Backend:
    """Import the backend. Raises `NoBackend`."""
    try:
        return importlib.import_module(f"{__name__}.{name}")  # type: ignore[return-value]
    except (Exception, SystemExit) as cause:  # an import runs anything, and fails in any way
        absent = isinstance(cause, ModuleNotFoundError) and name in _EXTRAS
        remedy = f'. Get it with: pip install "oarbank-llmserve[{name}]"' if absent else ""
        raise NoBackend(f"backend {name}: {end_of(cause)}{remedy}") from None


def end_of(cause: BaseException) -> str:
    """The last line of what went wrong, which says most in an import's failure."""
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[-1].strip()[-200:]
