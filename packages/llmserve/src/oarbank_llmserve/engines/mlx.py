"""MLX through mlx-lm's models and caches: our own loop over them, so that each call is a unit that ends synchronised.

mlx-lm's generators begin the next token before they hand out the last (work in the idle), read a whole prompt in one
call, and set a wired limit, which takes memory from the protected program: none of them is used. Slices are cut between
layers, for models whose caches can be cut back to where they were; others step whole. The engine must never fetch
anything, run a model's own code, or leave work on the device when a call returns.

It was made on `mlx[cpu]`. There a sequence's logits are the same to the bit alone and in a batch, whole and in slices,
however its prompt was cut (tests/real_model; mlx 0.32.4, EPYC, Linux, November 2026). On a GPU other kernels serve
other sizes: equal text is likely there, not promised.

Never run: Metal; tested with a real model on mlx for the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from oarbank_llmserve.engines import BadModel, Live, Options, OutOfMemory, PromptFault, Room, Sampler, Slicing, end_of
from oarbank_llmserve.engines.mlx_folder import check_folder
from oarbank_llmserve.engines.mlx_library import caches as kinds
from oarbank_llmserve.engines.mlx_library import memory_fence, mx, numpy, set_memory_limit, settle
from oarbank_llmserve.engines.mlx_load import TRAIN_NAMES, UNKNOWN_TRAIN, Spelling, first_number, load, read_weights
from oarbank_llmserve.engines.mlx_parts import Parts
from oarbank_llmserve.engines.mlx_rows import Caches, Rows
from oarbank_llmserve.engines.mlx_slices import Gate, Post, Watch
from oarbank_llmserve.slices import Slices

FULL_CHUNK = {"cpu": 32, "gpu": 512}  # on a CPU, larger ones are no faster (measured), only longer
CACHE_STEP = 256  # tokens by which mlx-lm's caches grow
_FILL = 0.9  # of the memory granted; the rest is for what a step needs in passing


def device() -> str:
    """ "gpu" where MLX computes on one (Metal; CUDA where its build has it)."""
    return "gpu" if mx.default_device() == mx.gpu else "cpu"


def versions() -> dict[str, str]:
    """The two packages' versions."""
    return {name: metadata.version(name) for name in ("mlx", "mlx-lm")}


def open_engine(options: Options) -> Mlx:
    """Load a model's folder."""
    if options.model is None:
        raise BadModel("model: must be the folder of an MLX model; nothing found")
    return Mlx(options.model, options)


class Mlx:
    """See `oarbank_llmserve.engines.Engine`."""

    steps_last_token = True  # the rows of a step are as exact as one alone; on a CPU eight prompts begin 0.7 s sooner

    def __init__(self, folder: Path, options: Options) -> None:
        self.full_chunk = FULL_CHUNK[device()]
        weights = check_folder(folder)
        self._limit = set_memory_limit(options.memory_gb)
        if weights > self._limit:
            raise OutOfMemory(
                f"model {folder.name}: its weights take {weights / 1e9:.1f} GB; {self._limit / 1e9:.1f} GB are granted"
            )
        self._model, config, self._tokenizer = load(folder)
        read_weights(self._model, options.going)
        self._train = first_number(config, TRAIN_NAMES) or UNKNOWN_TRAIN
        self._words = first_number(config, ("vocab_size",))
        self._ends = frozenset(self._tokenizer.eos_token_ids)
        self._spell = Spelling(self._tokenizer)
        self._layers = len(self._model.layers)
        self._slices, self._parts = Slices(self._layers), Parts()
        self._post = Post()
        self._rolls_back = self._mergeable = self._sliceable = False
        self._room = 0  # tokens of a sequence, once reserved
        self._start()

    def _start(self) -> None:
        self._rows = Rows(settle)
        self._held: dict[int, int] = {}  # tokens in each slot's caches

    def tokenize(self, text: str) -> list[int]:
        """The prompt's tokens; control tokens written in it (a chat format's) count as such."""
        tokens = self._tokenizer.encode(text, verbose=False)
        if not tokens:
            raise PromptFault("the prompt has no tokens")
        return self._known(tokens)

    def chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """Through the template in tokenizer_config.json or chat_template.jinja."""
        if not self._tokenizer.has_chat_template:
            raise PromptFault("the model has no chat template; give the prompt as text")
        said = [dict(message) for message in messages]
        try:
            tokens = self._tokenizer.apply_chat_template(said, add_generation_prompt=True)
        except Exception as fault:  # a template is a program of the model's
            raise PromptFault(f"the model's chat template refuses: {end_of(fault)}") from None
        return self._known(tokens)

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        """Warm up and see what a sequence takes. MLX allocates as sequences grow: this is a promise, not a claim."""
        self._start()
        with memory_fence():
            caches = self._new_caches()
            self._kinds(caches)
            self._gate_layers(caches)
            took = sum(cache.nbytes for cache in caches)
            free = int(_FILL * self._limit) - mx.get_active_memory()
            mx.clear_cache()
        blocks = free // max(took, 1)  # of CACHE_STEP tokens
        asked = -(-max(min(tokens, self._train), 2) // CACHE_STEP)
        if blocks < 1:
            needs = f"{CACHE_STEP} tokens take {took} bytes"
            raise OutOfMemory(f"no memory for a context: {needs}; {max(free, 0)} are left")
        fits = min(asked, blocks)
        room = Room(min(slots, blocks // fits) if self._mergeable else 1, min(fits * CACHE_STEP, self._train))
        self._room = room.tokens
        return room

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        """The part's last token goes by itself where it is the prompt's: only its row needs the vocabulary."""
        if first:
            self._rows.begin(slot, self._new_caches())
            self._held[slot] = 0
        self._check_room(slot, len(tokens))
        read = tokens if last is None else tokens[:-1]
        with memory_fence(), self._undone_on_failure(caches := self._rows.alone(slot), [slot]):
            watch = self._watch_for(slicing)
            done = 0
            while done < len(read):
                size = watch.part(len(read) - done) if watch else len(read)
                self._forward([list(read[done : done + size])], caches, watch, has_tail=False)
                settle([cache.state for cache in caches])
                done += size
                if watch:
                    watch.end_part(more=done < len(read) or last is not None)
            chosen = self._next([[tokens[-1]]], caches, [last], [slot], watch)[0] if last is not None else None
        self._held[slot] += len(tokens)
        if last is not None:
            mx.clear_cache()  # what a long part needed in passing is somebody else's again
        return chosen

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        """One token of each through the model, as rows of one batch."""
        for one in live:
            self._check_room(one.slot, 1)
        by_slot = {one.slot: one for one in live}
        with memory_fence():
            caches, order = self._rows.together([one.slot for one in live])
            inputs = [[by_slot[slot].token] for slot in order]
            with self._undone_on_failure(caches, order):
                samplers = [by_slot[slot].sampler for slot in order]
                chosen = self._next(inputs, caches, samplers, order, self._watch_for(slicing))
        for slot in order:
            self._held[slot] += 1
        found = dict(zip(order, chosen, strict=True))
        return [found[one.slot] for one in live]

    def drop(self, slot: int) -> None:
        """Forget its caches."""
        self._rows.drop(slot)
        self._held.pop(slot, None)

    def piece(self, token: int) -> bytes:
        """The token's bytes; control tokens have none."""
        return self._spell.piece(token)

    def is_end(self, token: int) -> bool:
        """What generation_config.json, config.json or the tokenizer call the end."""
        return token in self._ends

    def set_threads(self, threads: int | None) -> None:
        """Nothing: MLX computes with one thread of a stream, or with the GPU."""

    def close(self) -> None:
        """Forget the caches, then the model."""
        self._start()
        self._model = None
        mx.clear_cache()

    def _known(self, tokens: Sequence[int]) -> list[int]:
        """A tokenizer may hold more tokens than the model, and MLX would read past the end of its table."""
        largest = max(tokens)
        if self._words is not None and largest >= self._words:
            raise PromptFault(f"the prompt has token {largest}, and the model knows {self._words} tokens")
        return list(tokens)

    def _new_caches(self) -> Caches:
        return kinds.make_prompt_cache(self._model)

    def _kinds(self, caches: Caches) -> None:
        """Plain caches of keys and values can be cut back to where they were; others (a window, a state) cannot."""
        self._rolls_back = all(type(cache) is kinds.KVCache for cache in caches)
        self._mergeable = all(hasattr(cache, "merge") for cache in caches)

    def _gate_layers(self, caches: Caches) -> None:
        """Stand between a model's layers, and warm up. Where its loop goes past the gates, there are no slices."""
        layers = self._model.layers
        for index, layer in enumerate(layers):
            if not isinstance(layer, Gate):
                layers[index] = Gate(layer, self._post)
        unhurried = Slicing(float("inf"), lambda: True)
        self._post.watch = counting = Watch(unhurried, Slices(self._layers), Parts(), self._layers)
        try:
            for size in (2, 1):
                counting.begin(size, has_tail=True)
                logits = self._model(mx.zeros((1, size), dtype=mx.int32), cache=caches)
                settle((logits, [cache.state for cache in caches]))
        finally:
            self._post.watch = None
        self._sliceable = self._rolls_back and counting.seen == 2 * self._layers

    def _watch_for(self, slicing: Slicing | None) -> Watch | None:
        if slicing is None or not self._sliceable:
            return None
        return Watch(slicing, self._slices, self._parts, self._layers)

    def _check_room(self, slot: int, more: int) -> None:
        if slot not in self._held:
            raise PromptFault("the sequence was lost in a step that failed", slot)
        if self._held[slot] + more > self._room:
            raise PromptFault("the model's context is full", slot)

    def _forward(self, inputs: list[list[int]], caches: Caches, watch: Watch | None, *, has_tail: bool) -> Any:
        if watch:
            watch.begin(len(inputs) * len(inputs[0]), has_tail=has_tail)
        self._post.watch = watch
        try:
            return self._model(mx.array(inputs, dtype=mx.int32), cache=caches)
        finally:
            self._post.watch = None

    def _next(
        self,
        inputs: list[list[int]],
        caches: Caches,
        samplers: Sequence[Sampler],
        slots: Sequence[int],
        watch: Watch | None,
    ) -> list[int]:
        """The next token of each row. A row that is no number ends the step before anybody draws."""
        logits = self._forward(inputs, caches, watch, has_tail=True)[:, -1]
        likeliest = mx.argmax(logits, axis=-1)
        broken = mx.any(mx.isnan(logits), axis=-1)
        whole = None if all(sampler.greedy for sampler in samplers) else logits.astype(mx.float32)
        settle((likeliest, broken, whole, [cache.state for cache in caches]))
        if watch:
            watch.end_step()
        for slot, bad in zip(slots, broken.tolist(), strict=True):
            if bad:
                raise PromptFault("the model's output is not a number", slot)
        chosen = likeliest.tolist()
        if whole is not None:
            rows = numpy.array(whole, copy=None)
            chosen = [
                token if sampler.greedy else sampler.pick(rows[row])
                for row, (token, sampler) in enumerate(zip(chosen, samplers, strict=True))
            ]
        return chosen

    @contextlib.contextmanager
    def _undone_on_failure(self, caches: Caches, slots: Sequence[int]) -> Generator[None]:
        before = [cache.state[-1] for cache in caches] if self._rolls_back else None
        try:
            yield
        except BaseException:
            if before is None:  # nobody knows what they hold
                for slot in slots:
                    self.drop(slot)
                raise
            # The state of plain caches ends with how many tokens they hold. What lies behind is overwritten.
            for cache, held in zip(caches, before, strict=True):
                if cache.state[-1] > held:
                    cache.trim(cache.state[-1] - held)
            raise
