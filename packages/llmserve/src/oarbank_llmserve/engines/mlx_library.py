"""MLX and mlx-lm, imported the one way that suits a guest: nothing fetched, no advice printed, no memory wired.

Who imports this has the three modules of mlx-lm that llmserve uses, `settle` to end a unit, and a lack of memory as
`OutOfMemory`. mlx-lm sets a wired limit in its generators, which takes memory from the protected program for good: that
is out of reach from here on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from importlib import import_module
from typing import Any

from oarbank_llmserve.engines import OutOfMemory, end_of

# Before the libraries load, which read them once: a model is on this node or nowhere, and a library prints no advice.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

mx: Any = import_module("mlx.core")  # a module of C++, and one without types
numpy: Any = import_module("numpy")


def never_wire(core: Any) -> None:
    """Take the wired limit out of everybody's hands; 0, which MLX begins with, wires nothing."""
    core.set_wired_limit = lambda limit: 0


never_wire(mx)  # before mlx-lm is imported, whose generators set it
models: Any = import_module("mlx_lm.utils")
tokenizers: Any = import_module("mlx_lm.tokenizer_utils")
caches: Any = import_module("mlx_lm.models.cache")


# How MLX words a lack of memory. It has no exception of its own for it.
_NO_MEMORY = ("Insufficient Memory", "OutOfMemory", "malloc", "nable to allocate")


def settle(arrays: Any) -> None:
    """Compute them, and wait for everything on the stream that computes them."""
    mx.eval(arrays)
    mx.synchronize(mx.default_stream(mx.default_device()))


def set_memory_limit(memory_gb: float | None) -> int:
    """Bytes that weights and caches may take. MLX holds the limit softly: it frees before it grows, and then grows."""
    if memory_gb is not None:
        mx.set_memory_limit(int(memory_gb * 1e9))
        return int(memory_gb * 1e9)
    recommended = mx.device_info().get("max_recommended_working_set_size")
    return min(mx.get_memory_limit(), recommended or mx.get_memory_limit())


@contextlib.contextmanager
def memory_fence() -> Generator[None]:
    """A lack of memory inside is an `OutOfMemory`."""
    try:
        yield
    except MemoryError:
        raise OutOfMemory("out of memory") from None
    except RuntimeError as fault:
        if any(word in str(fault) for word in _NO_MEMORY):
            raise OutOfMemory(f"MLX could not allocate memory: {end_of(fault)}") from None
        raise
