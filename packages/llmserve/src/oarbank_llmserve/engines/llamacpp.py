"""llama.cpp through the low-level calls of `llama_cpp`: several sequences in one context, one call one unit.

Each call feeds at most `full_chunk` tokens, so that a prompt's units are as short as the governor wants them, and
`llama_synchronize` closes it: on a GPU `llama_decode` returns before the device is done. The engine must never lock
memory, spin in an idle, or let llama.cpp write to the terminal.

On a CPU a sequence's logits are the same to the bit alone, in any batch, under any duty and cut behind every layer:
each sequence has cells of its own, attention goes one way whatever the batch, and no prompt is read one token at a time
(measured: SmolLM2-135M Q4_1, batches of 1 to 8, 24 steps). So are its texts, at temperature 0 and with a seed. On a
GPU a kernel's rounding may depend on how many sequences step.

Never run: GPU builds of llama.cpp; tested with a real model on a CPU.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import (
    BadModel,
    Live,
    Options,
    OutOfMemory,
    PromptFault,
    Room,
    Sampler,
    Slicing,
    StepGivenUp,
    llamacpp_chat,
)
from oarbank_llmserve.engines.llamacpp_library import (
    can_flash,
    cell_bytes,
    context_params,
    device,
    lib,
    load_model,
    meta,
    numpy,
)
from oarbank_llmserve.engines.llamacpp_slices import Knife

FULL_CHUNK = {"cpu": 128, "gpu": 512}  # on a CPU, larger ones are no faster (measured)
MOST_SLOTS = {"cpu": 16, "gpu": 32}  # on two cores, 16 sequences give 1.2 times the tokens of 8 (measured)
_CELLS_AT_ONCE = 256  # llama.cpp rounds a sequence's cells up to this
_UNDONE, _NO_MEMORY = 1, -2  # what llama_decode answers


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

    steps_last_token = False  # a single token takes another path through the library, with other rounding

    def __init__(self, path: Path, options: Options) -> None:
        self.full_chunk = FULL_CHUNK[device()]
        self._granted = options.threads
        self._memory_gb = options.memory_gb
        self._threads: int | None = None
        self._ctx: Any = None
        self._batch: Any = None
        self._knife: Knife | None = None
        self._tokens = 0  # that a slot holds
        self._places: dict[int, int] = {}  # a slot's sequence in llama.cpp: those of a step must be neighbours
        self._lengths: dict[int, int] = {}  # of each slot's sequence, in tokens
        self._model = load_model(path, options)
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
        return self._tokenized(text, begin=True)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The template writes the model's first token itself, where it wants one."""
        render = llamacpp_chat.compiled(meta(self._model, "tokenizer.chat_template"))
        begin, end = (self._word(named(self._vocab)) for named in (lib.llama_vocab_bos, lib.llama_vocab_eos))
        return self._tokenized(llamacpp_chat.rendered(render, messages, begin, end), begin=False)

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        """Allocate what the job's prompts need, and no more: the memory is somebody else's too."""
        self._free_context()
        tokens = max(min(tokens, self._train), 2)
        slots = max(min(slots, MOST_SLOTS[device()], lib.llama_max_parallel_sequences()), 1)
        slots, tokens = self._affordable(slots, tokens)
        self._knife = Knife(lib.llama_model_n_layer(self._model)) if sliced else None
        while not self._ctx:
            self._ctx = self._context(slots, tokens)
            if not self._ctx and slots == 1:
                raise OutOfMemory(f"no memory for a context of {tokens} tokens")
            slots = slots if self._ctx else slots // 2
        self._tokens = min(lib.llama_n_ctx_seq(self._ctx), max(self._train, 2))
        self._memory = lib.llama_get_memory(self._ctx)
        self._batch = _Batch(max(self.full_chunk, slots))
        self._warm_up()
        return Room(slots, self._tokens)

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        """One call of the library, and its end."""
        if first:
            self.drop(slot)
            self._places[slot] = min(set(range(len(self._places) + 1)) - set(self._places.values()))
            self._lengths[slot] = 0
        length, place = self._lengths[slot], self._places[slot]
        if length + len(tokens) > self._tokens:
            raise PromptFault("the model's context is full", slot)
        count = len(tokens)
        self._batch.fill(tokens, range(length, length + count), [place] * count, [0] * (count - 1) + [last is not None])
        self._decode([slot], slicing)
        token = None if last is None else self._picked([slot], [last])[0]
        self._lengths[slot] = length + count
        return token

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        """One token of each sequence through the model."""
        for one in live:
            if self._lengths[one.slot] >= self._tokens:
                raise PromptFault("the model's context is full", one.slot)
        self._close_ranks()
        order = sorted(range(len(live)), key=lambda index: self._places[live[index].slot])
        slots = [live[index].slot for index in order]
        self._batch.fill(
            [live[index].token for index in order],
            [self._lengths[slot] for slot in slots],
            [self._places[slot] for slot in slots],
            [True] * len(live),
        )
        self._decode(slots, slicing)
        tokens = self._picked(slots, [live[index].sampler for index in order])
        answer = [0] * len(live)
        for index, slot, token in zip(order, slots, tokens, strict=True):
            self._lengths[slot] += 1
            answer[index] = token
        return answer

    def drop(self, slot: int) -> None:
        """Its cells are free at once."""
        self._lengths.pop(slot, None)
        place = self._places.pop(slot, None)
        if place is not None:
            lib.llama_memory_seq_rm(self._memory, place, -1, -1)

    def piece(self, token: int) -> bytes:
        """The token's bytes; control tokens have none."""
        return self._bytes(token, special=False)

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

    def _context(self, slots: int, tokens: int) -> Any:
        """A context, or a null pointer; without flash attention where the model does not take it."""

        def made(flash: bool) -> Any:
            params = context_params(slots, tokens, self.full_chunk, self._threads_now(), flash=flash)
            if self._knife is not None:
                params.cb_eval = self._knife.callback
            return lib.llama_init_from_model(self._model, params)

        return (can_flash() and made(flash=True)) or made(flash=False)

    def _threads_now(self) -> int:
        # Never more than CPUs: with three threads on two of them a step takes three times as long (measured).
        asked = self._threads or default_threads()
        return min(asked, self._granted or asked, os.cpu_count() or 1)

    def _affordable(self, slots: int, tokens: int) -> tuple[int, int]:
        """Fewer sequences, and then shorter ones, where the grant leaves no room beside the weights."""
        if self._memory_gb is None:
            return slots, tokens
        # Beside weights and cells: logits, and the attention scores of one part of a prompt over all that came before
        # (none with flash attention, which not every model takes). With SmolLM2-135M that is 40 MB too many of 250
        # (measured without it): rather less context than more memory.
        cell, scores = cell_bytes(self._model), 4 * lib.llama_model_n_head(self._model) * self.full_chunk
        work = 8 * self._words * max(self.full_chunk, slots)
        free = int(self._memory_gb * 1e9) - lib.llama_model_size(self._model) - work
        rounded = -(-tokens // _CELLS_AT_ONCE) * _CELLS_AT_ONCE
        fits = (free // rounded - scores) // cell
        if fits >= 1:
            return min(slots, fits), tokens
        cells = free // (cell + scores) // _CELLS_AT_ONCE * _CELLS_AT_ONCE
        if cells < _CELLS_AT_ONCE:
            raise OutOfMemory(f"{self._memory_gb:g} GB are granted: no room for a context beside the model")
        return 1, cells

    def _close_ranks(self) -> None:
        """Move sequences down into the places that others left: llama.cpp takes neighbours into one step only."""
        for place in sorted(set(range(len(self._places))) - set(self._places.values())):
            slot = max(self._places, key=lambda slot: self._places[slot])
            lib.llama_memory_seq_cp(self._memory, self._places[slot], place, -1, -1)
            lib.llama_memory_seq_rm(self._memory, self._places[slot], -1, -1)
            self._places[slot] = place

    def _decode(self, slots: Sequence[int], slicing: Slicing | None) -> None:
        """The batch through the model. Whatever goes wrong: the sequences of `slots` are as they were."""
        knife = self._knife
        try:
            if knife is not None:
                knife.began(self._batch.count, slicing)
            answer = lib.llama_decode(self._ctx, self._batch.handle)
            lib.llama_synchronize(self._ctx)
            if knife is not None:
                knife.ended()
                if knife.given_up:
                    raise StepGivenUp
            if answer == _NO_MEMORY:
                raise OutOfMemory("llama.cpp could not allocate memory for a step")
            if answer:
                full = "the model's context is full"
                raise PromptFault(full if answer == _UNDONE else f"llama_decode answered {answer}")
        except BaseException:
            self._step_back(slots)
            raise

    def _step_back(self, slots: Sequence[int]) -> None:
        for slot in slots:
            lib.llama_memory_seq_rm(self._memory, self._places[slot], self._lengths[slot], -1)

    def _picked(self, slots: Sequence[int], samplers: Sequence[Sampler]) -> list[int]:
        """The next token of each row. No sampler draws before all rows are known to be sound."""
        rows = self._logits(len(slots))
        best = rows.argmax(axis=1)  # finds a NaN first
        sound = numpy.isfinite(rows[numpy.arange(len(slots)), best])
        if not sound.all():
            self._step_back(slots)
            raise PromptFault("the model's output is not a number", slots[int(sound.argmin())])
        tokens = best.tolist()
        return [
            token if sampler.greedy else sampler.pick(row)
            for token, sampler, row in zip(tokens, samplers, rows, strict=True)
        ]

    def _logits(self, count: int) -> Any:
        """The rows that the last decode gave, in the order of its batch."""
        return numpy.ctypeslib.as_array(lib.llama_get_logits(self._ctx), shape=(count, self._words))

    def _tokenized(self, text: str, *, begin: bool) -> list[int]:
        data = text.encode()
        room = len(data) + 8
        tokens = (lib.llama_token * room)()
        count = lib.llama_tokenize(self._vocab, data, len(data), tokens, room, begin, True)
        if count < 0:
            tokens = (lib.llama_token * -count)()
            count = lib.llama_tokenize(self._vocab, data, len(data), tokens, -count, begin, True)
        if count <= 0:
            raise PromptFault("the prompt has no tokens")
        return tokens[:count]

    def _bytes(self, token: int, *, special: bool) -> bytes:
        room = 64
        buffer = ctypes.create_string_buffer(room)
        count = lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, special)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, -count, 0, special)
        return buffer.raw[: max(count, 0)]

    def _word(self, token: int) -> str:
        """A control token as a template writes it; nothing where the model has none."""
        return "" if token < 0 else self._bytes(token, special=True).decode(errors="replace")

    def _warm_up(self) -> None:
        self.prefill(0, (0,), first=True, last=None)
        self.drop(0)

    def _free_context(self) -> None:
        self._places.clear()
        self._lengths.clear()
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.free()
        ctx, self._ctx = self._ctx, None
        if ctx:
            lib.llama_free(ctx)


class _Batch:
    """llama.cpp's batch with arrays over its memory: filling it token by token would cost a step 2 % of its time."""

    def __init__(self, size: int) -> None:
        self.handle = lib.llama_batch_init(size, 0, 1)
        self.count = 0
        view = numpy.ctypeslib.as_array
        self._token, self._position, self._wanted = (
            view(array, shape=(size,)) for array in (self.handle.token, self.handle.pos, self.handle.logits)
        )
        view(self.handle.n_seq_id, shape=(size,))[:] = 1
        self._sequences = [self.handle.seq_id[index] for index in range(size)]

    def fill(
        self, tokens: Sequence[int], positions: Sequence[int], sequences: Sequence[int], wanted: Sequence[int]
    ) -> None:
        """What the next decode takes; `wanted` says whose logits come out."""
        self.count = self.handle.n_tokens = count = len(tokens)
        self._token[:count], self._position[:count], self._wanted[:count] = tokens, positions, wanted
        for pointer, sequence in zip(self._sequences, sequences, strict=False):
            pointer[0] = sequence

    def free(self) -> None:
        """Give it back."""
        lib.llama_batch_free(self.handle)
