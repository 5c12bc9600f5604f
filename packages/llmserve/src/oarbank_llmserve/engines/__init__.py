"""The seam between the loop and a model: what an engine does, what may go wrong, and which backends there are.

A backend is a module of this package, imported only when somebody asks for it; a missing one is a `NoBackend` with
the end of the cause and what to do. An engine is used from one thread. Each of its calls that works on the device
returns only when the device is done, so that the caller's unit ends there. To add a backend: a module of its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

NAMES = ("mlx", "llamacpp", "stub")  # in the order of preference; the stand-in is last
_WITHOUT_ENGINE = {"mlx": "this version has no MLX engine. Take a .gguf file, which the backend llamacpp opens"}
_EXTRAS = ("llamacpp",)  # backends whose packages an extra of ours brings


@dataclass(frozen=True, slots=True)
class Options:
    """How to open a model."""

    model: Path | None  # None: the stand-in needs none
    threads: int | None = None  # granted: CPU threads at most, whatever is asked later; None: no bound
    going: Callable[[], bool] = lambda: True  # asked between load steps; False ends the load with `LoadStopped`


class Engine(Protocol):
    """A loaded model that continues one prompt at a time, always with the likeliest token."""

    full_chunk: int  # tokens of a full-size prefill unit

    def tokenize(self, text: str) -> list[int]:
        """The prompt's tokens. Host work. `PromptFault` when there are none."""

    def reserve(self, tokens: int) -> int:
        """Make room for a prompt and its completion and warm up; how many tokens fit. Device work."""

    def prefill(self, tokens: Sequence[int], *, first: bool, last: bool) -> int | None:
        """Read part of a prompt, `full_chunk` tokens at most; after the last part the first new token. Device work."""

    def step(self, token: int) -> int:
        """Take the newest token, give the next. Device work."""

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
    """This prompt has no completion; the next one may have."""


def load(name: str) -> Backend:
    """Import the backend. Raises `NoBackend`."""
    if name in _WITHOUT_ENGINE:
        raise NoBackend(f"backend {name}: {_WITHOUT_ENGINE[name]}")
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
