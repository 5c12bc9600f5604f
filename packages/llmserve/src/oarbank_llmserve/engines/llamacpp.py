"""llama.cpp through the low-level calls of `llama_cpp`: one call of the library is one unit, and it ends synchronised.

Each call feeds at most `full_chunk` tokens, so that a prompt's units are as short as the governor wants them, and
`llama_synchronize` closes it: on a GPU `llama_decode` returns before the device is done. The engine must never lock
memory, spin in an idle, or let llama.cpp write to the terminal. Greedy: the likeliest token, always.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import BadModel, LoadStopped, Options, OutOfMemory, PromptFault

# Before the library loads: it reads them once.
# libgomp's threads spin for 7 ms after each step, which anybody's meter counts as work in the idle: 0.49 of a core at
# duty 0.3 with two threads, 0.26 with this (measured). On Metal, residency sets would wire the model's memory.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("GGML_METAL_NO_RESIDENCY", "1")

lib: Any = import_module("llama_cpp")  # ctypes names, of which no checker knows a type
numpy: Any = import_module("numpy")  # the binding needs it as well

ALL_LAYERS = 1_000_000  # more than any model has
FULL_CHUNK = {"cpu": 128, "gpu": 512}  # on a CPU, larger ones are no faster (measured)
_UNDONE, _NO_MEMORY = 1, -2  # what llama_decode answers

# The library calls this for as long as the process lives: a collected callback would crash it.
_SILENCE = lib.llama_log_callback(lambda level, text, data: None)
lib.llama_log_set(_SILENCE, ctypes.c_void_p(0))
lib.llama_backend_init()


def device() -> str:
    """ "gpu" where this build found a device to offload to."""
    return "gpu" if lib.llama_supports_gpu_offload() else "cpu"


def versions() -> dict[str, str]:
    """The binding's version; it pins llama.cpp's."""
    try:
        return {"llama-cpp-python": metadata.version("llama-cpp-python")}
    except metadata.PackageNotFoundError:
        return {"llama-cpp-python": str(getattr(lib, "__version__", "unknown"))}


def default_threads() -> int:
    """Half of the CPUs this process may use: the other half is somebody else's."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, usable // 2)


def open_engine(options: Options) -> LlamaCpp:
    """Load a GGUF file; models.py saw that it begins as one."""
    if options.model is None:
        raise BadModel("model: must be a .gguf file; nothing found")
    return LlamaCpp(options.model, options)


class LlamaCpp:
    """See `oarbank_llmserve.engines.Engine`."""

    def __init__(self, path: Path, options: Options) -> None:
        self.full_chunk = FULL_CHUNK[device()]
        self._granted = options.threads
        self._threads: int | None = None
        self._ctx: Any = None
        self._batch: Any = None
        self._position = 0
        self._model = _load(path, options.going)
        try:
            self._vocab = lib.llama_model_get_vocab(self._model)
            self._words = lib.llama_vocab_n_tokens(self._vocab)
            self._train = lib.llama_model_n_ctx_train(self._model)
            if lib.llama_model_has_encoder(self._model) or self._words == 0:
                raise BadModel(f"model {path.name}: must be one that continues text")
        except BaseException:
            self.close()
            raise

    def tokenize(self, text: str) -> list[int]:
        """The prompt's tokens; control tokens written in it (a chat format's) count as such."""
        data = text.encode()
        room = len(data) + 8
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, data, len(data), tokens, room, True, True)
        if count < 0:
            tokens = (lib.llama_token * -count)()
            count = lib.llama_tokenize(self._vocab, data, len(data), tokens, -count, True, True)
        if count <= 0:
            raise PromptFault("the prompt has no tokens")
        return tokens[:count]

    def reserve(self, tokens: int) -> int:
        """Allocate what the longest of the job's prompts needs, and no more: the memory is somebody else's too."""
        self._free_context()
        room = max(min(tokens, self._train), 2)
        self._ctx = lib.llama_init_from_model(self._model, _context_params(room, self.full_chunk, self._threads_now()))
        if not self._ctx:
            raise OutOfMemory(f"no memory for a context of {room} tokens")
        self._memory = lib.llama_get_memory(self._ctx)
        self._batch = lib.llama_batch_init(self.full_chunk, 0, 1)
        self._warm_up()
        return min(lib.llama_n_ctx(self._ctx), max(self._train, 2))

    def prefill(self, tokens: Sequence[int], *, first: bool, last: bool) -> int | None:
        """One call of the library, and its end."""
        if first:
            lib.llama_memory_clear(self._memory, False)
            self._position = 0
        self._decode(tokens, last)
        return self._likeliest(len(tokens) - 1) if last else None

    def step(self, token: int) -> int:
        """One token through the model."""
        self._decode((token,), True)
        return self._likeliest(0)

    def piece(self, token: int) -> bytes:
        """The token's bytes; control tokens have none."""
        room = 64
        buffer = ctypes.create_string_buffer(room)
        count = lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, -count, 0, False)
        return buffer.raw[: max(count, 0)]

    def is_end(self, token: int) -> bool:
        """Any of the model's end-of-generation tokens."""
        return bool(lib.llama_vocab_is_eog(self._vocab, token))

    def set_threads(self, threads: int | None) -> None:
        """For prefill and decode alike; never more than `Options.threads` granted."""
        self._threads = threads
        if self._ctx:
            lib.llama_set_n_threads(self._ctx, self._threads_now(), self._threads_now())

    def close(self) -> None:
        """Free the context, then the model."""
        self._free_context()
        model, self._model = self._model, None
        if model:
            lib.llama_model_free(model)

    def _threads_now(self) -> int:
        # Never more than CPUs: with three threads on two of them a step takes three times as long (measured).
        asked = self._threads or default_threads()
        return min(asked, self._granted or asked, os.cpu_count() or 1)

    def _decode(self, tokens: Sequence[int], want: bool) -> None:
        batch = self._batch
        batch.n_tokens = len(tokens)
        for index, token in enumerate(tokens):
            batch.token[index] = token
            batch.pos[index] = self._position + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = want and index == len(tokens) - 1
        answer = lib.llama_decode(self._ctx, batch)
        lib.llama_synchronize(self._ctx)
        if answer == _NO_MEMORY:
            raise OutOfMemory("llama.cpp could not allocate memory for a step")
        if answer == _UNDONE:
            raise PromptFault("the model's context is full")
        if answer:
            raise PromptFault(f"llama_decode answered {answer}")
        self._position += len(tokens)

    def _likeliest(self, index: int) -> int:
        logits = lib.llama_get_logits_ith(self._ctx, index)
        return int(numpy.ctypeslib.as_array(logits, shape=(self._words,)).argmax())

    def _warm_up(self) -> None:
        self._position = 0
        self._decode((0,), True)
        lib.llama_memory_clear(self._memory, False)
        self._position = 0

    def _free_context(self) -> None:
        batch, self._batch = self._batch, None
        if batch is not None:
            lib.llama_batch_free(batch)
        ctx, self._ctx = self._ctx, None
        if ctx:
            lib.llama_free(ctx)


def _load(path: Path, going: Callable[[], bool]) -> Any:
    stopped = False

    def between_steps(done: float, data: Any) -> bool:
        nonlocal stopped
        stopped = stopped or not going()
        return not stopped

    params = _model_params()
    callback = lib.llama_progress_callback(between_steps)
    params.progress_callback = callback
    model = lib.llama_model_load_from_file(os.fsencode(path), params)
    if stopped:
        if model:
            lib.llama_model_free(model)
        raise LoadStopped("stopped while the model loaded")
    if not model:
        raise BadModel(f"model {path.name}: llama.cpp does not load it")
    return model


def _model_params() -> Any:
    return _with(
        lib.llama_model_default_params(),
        n_gpu_layers=ALL_LAYERS if device() == "gpu" else 0,
        # Map the file and lock nothing: wired memory is memory that the protected program cannot have.
        load_mode=lib.LLAMA_LOAD_MODE_MMAP,
        # Repacked weights double the host's copy, and on a CPU with AMX they end in a general protection fault
        # (llama-cpp-python 0.3.36, Xeon, Linux 6.18). Without them the same machine reads 320 prompt tokens a second.
        use_extra_bufts=False,
    )


def _context_params(tokens: int, chunk: int, threads: int) -> Any:
    return _with(
        lib.llama_context_default_params(),
        n_ctx=tokens,
        n_batch=chunk,
        n_ubatch=chunk,
        n_seq_max=1,
        n_threads=threads,
        n_threads_batch=threads,
        no_perf=True,
        # With flash attention the text depends on how a prompt was cut into units (measured), and so on the duty.
        flash_attn_type=lib.LLAMA_FLASH_ATTN_TYPE_DISABLED,
    )


def _with(params: Any, **values: Any) -> Any:
    """Set fields; a ctypes structure would take a name that it does not have in silence."""
    known = {name for name, *_ in params._fields_}
    unknown = sorted(set(values) - known)
    if unknown:
        raise AttributeError(f"llama_cpp knows no {', '.join(unknown)}: llmserve is made for 0.3.36 and later")
    for name, value in values.items():
        setattr(params, name, value)
    return params


# At import, so that a binding of another make is a backend that does not load, and no surprise in the middle of a job.
_model_params()
_context_params(2, 2, 1)
