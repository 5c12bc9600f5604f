"""The library behind llamacpp.py: how it is loaded, and with which parameters a model and a context are made.

Importing this loads `llama_cpp` and silences it. It must never let llama.cpp lock memory or write to the terminal.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import BadModel, LoadStopped, Options, OutOfMemory

# Before the library loads: it reads them once.
# libgomp's threads spin for 7 ms after each step, which anybody's meter counts as work in the idle: 0.49 of a core at
# duty 0.3 with two threads, 0.26 with this (measured). On Metal, residency sets would wire the model's memory.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("GGML_METAL_NO_RESIDENCY", "1")

lib: Any = import_module("llama_cpp")  # ctypes names, of which no checker knows a type
numpy: Any = import_module("numpy")  # the binding needs it as well

ALL_LAYERS = 1_000_000  # more than any model has
_F16, _BF16 = 1, 30  # ggml's numbers of its types; the binding has no names for them

# The library calls this for as long as the process lives: a collected callback would crash it.
_SILENCE = lib.llama_log_callback(lambda level, text, data: None)
lib.llama_log_set(_SILENCE, ctypes.c_void_p(0))
lib.llama_backend_init()


def device() -> str:
    """ "gpu" where this build found a device to offload to."""
    return "gpu" if lib.llama_supports_gpu_offload() else "cpu"


def load_model(path: Path, options: Options) -> Any:
    """The model's handle. Raises `BadModel`, `LoadStopped`, `OutOfMemory`."""
    size_gb = path.stat().st_size / 1e9
    if options.memory_gb is not None and size_gb > options.memory_gb:
        raise OutOfMemory(f"the model is {size_gb:.2f} GB, and {options.memory_gb:g} GB are granted")
    asked = _Going(options.going)
    params = model_params()
    callback = lib.llama_progress_callback(asked.between_steps)
    params.progress_callback = callback
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    if asked.stopped:
        if model:
            lib.llama_model_free(model)
        raise LoadStopped("stopped while the model loaded")
    if not model:
        raise BadModel(f"model {path.name}: llama.cpp does not load it")
    return model


class _Going:
    def __init__(self, going: Callable[[], bool]) -> None:
        self.stopped = False
        self._going = going

    def between_steps(self, done: float, data: Any) -> bool:
        self.stopped = self.stopped or not self._going()
        return not self.stopped


def model_params() -> Any:
    """For every model alike."""
    return with_fields(
        lib.llama_model_default_params(),
        n_gpu_layers=ALL_LAYERS if device() == "gpu" else 0,
        # Map the file and lock nothing: wired memory is memory that the protected program cannot have.
        load_mode=lib.LLAMA_LOAD_MODE_MMAP,
        # Repacked weights double the host's copy, and on a CPU with AMX they end in a general protection fault
        # (llama-cpp-python 0.3.36, Xeon, Linux 6.18). Without them the same machine reads 320 prompt tokens a second.
        use_extra_bufts=False,
    )


def context_params(slots: int, tokens: int, chunk: int, threads: int, *, flash: bool) -> Any:
    """For `slots` sequences of `tokens` each, read `chunk` at a time; `flash`: with flash attention, as `can_flash`."""
    return with_fields(
        lib.llama_context_default_params(),
        n_ctx=slots * tokens,
        n_batch=max(chunk, slots),
        n_ubatch=max(chunk, slots),
        n_seq_max=slots,
        n_threads=threads,
        n_threads_batch=threads,
        no_perf=True,
        # Keys and values of one type send flash attention through one of three loops, by how many tokens are read and
        # how many sequences step; each rounds in its own way, so the text would depend on the duty and on the
        # neighbours (measured). Of two types there is one loop, row by row and cell by cell.
        flash_attn_type=lib.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash else lib.LLAMA_FLASH_ATTN_TYPE_DISABLED,
        type_k=_F16,
        type_v=_BF16 if flash else _F16,
        # Cells of its own for each sequence. In one pool for all, the text depends on who else is in the batch: of 8
        # prompts 5 said something else than alone (measured, 64 tokens each, without flash attention).
        kv_unified=False,
    )


def can_flash() -> bool:
    """On a CPU. It looks at a sequence's own cells alone, where plain attention looks at all 256 of a block: a step of
    8 short sequences takes a sixth less time, one at 1,000 tokens a sixth more (SmolLM2-135M, whose attention weighs
    much). A GPU's flash attention takes no two types.
    """
    return device() == "cpu"


def with_fields(params: Any, **values: Any) -> Any:
    """Set fields; a ctypes structure would take a name that it does not have in silence."""
    known = {name for name, *_ in params._fields_}
    unknown = sorted(set(values) - known)
    if unknown:
        raise AttributeError(f"llama_cpp knows no {', '.join(unknown)}: llmserve is made for 0.3.36 and later")
    for name, value in values.items():
        setattr(params, name, value)
    return params


def meta(model: Any, key: str) -> str | None:
    """A value of the file's metadata; None where it has none."""
    room = 256
    while True:
        buffer = ctypes.create_string_buffer(room)
        length = lib.llama_model_meta_val_str(model, key.encode(), buffer, room)
        if length < 0:
            return None
        if length < room:
            return buffer.value.decode(errors="replace")
        room = length + 1


def cell_bytes(model: Any) -> int:
    """What one token of context takes: a key and a value of 16-bit floats for each layer and each of its heads."""
    architecture = meta(model, "general.architecture") or ""
    width = lib.llama_model_n_embd(model) // max(lib.llama_model_n_head(model), 1)
    keys, values = (int(meta(model, f"{architecture}.attention.{name}_length") or width) for name in ("key", "value"))
    return 2 * lib.llama_model_n_layer(model) * max(lib.llama_model_n_head_kv(model), 1) * (keys + values)


# At import, so that a binding of another make is a backend that does not load, and no surprise in the middle of a job.
model_params()
context_params(1, 2, 2, 1, flash=False)
