"""One turn of `benchmarks/llm.py`, in a process of its own: a model, eight prompts, one way of completing them.

Reads one JSON object (the turn) from its argument, says "ready" when the model is loaded and warm, waits for a line,
works, and prints one JSON object. Nothing of the load or the warm-up is in its figures.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oarbank_llmserve import engines
from oarbank_llmserve.batch import Batch
from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.sink import Completion
from oarbank_sdk.duty import Duty

PROMPTS = [
    "The first law of thermodynamics states that",
    "Once upon a time in a small village",
    "The capital of France is",
    "To make bread you need",
    "In computer science, a hash table",
    "The quick brown fox",
    "Water boils at a temperature of",
    "My favourite thing about autumn is",
]
LONG_TOKENS = 512
STORY = "The harbour was quiet that morning, and nobody in the town knew why the boats had not come back. "
clock = time.perf_counter


class Seen(list[Completion]):
    """A sink, and a control document that says nothing but the threads."""

    def __init__(self, threads: int) -> None:
        super().__init__()
        self.threads = threads

    def put(self, completion: Completion) -> None:
        self.append(completion)

    def safe_point(self) -> None:
        """Nobody steers."""


class Noted:
    """The governor, and how long each unit was."""

    def __init__(self, duty: Duty) -> None:
        self.units_s: list[tuple[str, float]] = []
        self._duty = duty
        self.scale = duty.scale

    @property
    def duty(self) -> float | None:
        return self._duty.duty

    @contextmanager
    def unit(self, label: str | None = None) -> Generator[None]:
        with self._duty.unit(label):
            began_s = clock()
            try:
                yield
            finally:
                self.units_s.append((label or "", clock() - began_s))


def ours(turn: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Our batch, under a duty and in slices where the turn says so."""
    threads = turn["threads"]
    engine = engines.load(turn["backend"]).open_engine(engines.Options(Path(turn["model"])))
    engine.set_threads(threads)
    duty = Duty(None, device="cpu")
    duty.set(turn.get("duty"))
    noted, seen = Noted(duty), Seen(threads)
    if turn.get("long"):
        text = engine.tokenize(STORY * 40)[:LONG_TOKENS]
        engine.tokenize = lambda asked: text  # type: ignore[method-assign]
        prompts = [Prompt("long", max_tokens=1)]
    else:
        prompts = [Prompt(text, max_tokens=turn["new"]) for text in PROMPTS]
    longest_s = turn.get("longest_s")
    for round_of in (prompts[:1], prompts):  # the first one warms up
        batch = Batch(Job("batch", tuple(round_of), turn["backend"], longest_s=longest_s), engine, noted, seen)
        batch.prepare()
        if round_of is not prompts and not turn.get("long"):
            batch.run(Seen(threads))
    noted.units_s.clear()

    def work() -> dict[str, Any]:
        busy_s, began_s = duty.busy_s, clock()
        totals = batch.run(seen)
        wall_s = clock() - began_s
        label = "prefill" if turn.get("long") else "decode"
        units_ms = sorted(seconds * 1000 for kind, seconds in noted.units_s if kind == label)
        return {
            "tps": totals.tokens / wall_s,
            "held": (duty.busy_s - busy_s) / wall_s,
            "longest_ms": units_ms[-1],
            "p95_ms": units_ms[int(0.95 * (len(units_ms) - 1))],
            "texts": [done.text for done in sorted(seen, key=lambda done: done.index)],
        }

    return work


def llamacpp_sequential(turn: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """The binding's own high-level way: one prompt after the other, greedy."""
    llama_cpp: Any = importlib.import_module("llama_cpp")
    model = llama_cpp.Llama(
        turn["model"], n_ctx=512, n_threads=turn["threads"], n_threads_batch=turn["threads"], verbose=False
    )

    def complete(prompt: str, new: int) -> int:
        answer = model.create_completion(prompt, max_tokens=new, temperature=0.0, repeat_penalty=1.0)
        return answer["usage"]["completion_tokens"]

    complete(PROMPTS[0], 4)

    def work() -> dict[str, Any]:
        began_s = clock()
        tokens = sum(complete(prompt, turn["new"]) for prompt in PROMPTS)
        return {"tps": tokens / (clock() - began_s)}

    return work


def llamacpp_batched(turn: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """The plain batched loop over the low-level calls: no units, no governor, no text, prompts packed into one call."""
    numpy: Any = importlib.import_module("numpy")
    library = importlib.import_module("oarbank_llmserve.engines.llamacpp_library")
    lib: Any = library.lib
    model = library.load_model(Path(turn["model"]), engines.Options(Path(turn["model"])))
    vocab, slots = lib.llama_model_get_vocab(model), len(PROMPTS)
    words = lib.llama_vocab_n_tokens(vocab)
    params = library.context_params(slots, 256, 512, turn["threads"], flash=library.can_flash())
    context = lib.llama_init_from_model(model, params)
    batch = lib.llama_batch_init(512, 0, 1)
    prompts = []
    for text in PROMPTS:
        room = (lib.llama_token * 64)()
        prompts.append(room[: lib.llama_tokenize(vocab, text.encode(), len(text), room, 64, True, True)])

    def decode(items: list[tuple[int, int, int, bool]]) -> list[int]:
        batch.n_tokens = len(items)
        for index, (token, position, sequence, wanted) in enumerate(items):
            batch.token[index], batch.pos[index], batch.n_seq_id[index] = token, position, 1
            batch.seq_id[index][0], batch.logits[index] = sequence, wanted
        assert lib.llama_decode(context, batch) == 0
        rows = sum(wanted for *_, wanted in items)
        logits = numpy.ctypeslib.as_array(lib.llama_get_logits(context), shape=(rows, words))
        return logits.argmax(axis=1).tolist()

    def generate(new: int) -> int:
        lib.llama_memory_clear(lib.llama_get_memory(context), True)
        packed = [
            (token, at, row, at == len(prompt) - 1)
            for row, prompt in enumerate(prompts)
            for at, token in enumerate(prompt)
        ]
        newest = dict(enumerate(decode(packed)))
        said = dict.fromkeys(newest, 1)
        while True:
            live = [row for row in said if said[row] < new and not lib.llama_vocab_is_eog(vocab, newest[row])]
            if not live:
                return sum(said.values())
            items = [(newest[row], len(prompts[row]) + said[row] - 1, row, True) for row in live]
            for row, token in zip(live, decode(items), strict=True):
                newest[row] = token
                said[row] += 1

    generate(4)

    def work() -> dict[str, Any]:
        began_s = clock()
        tokens = generate(turn["new"])
        return {"tps": tokens / (clock() - began_s)}

    return work


def mlx_batch_generate(turn: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """mlx-lm's own batch."""
    mlx_lm: Any = importlib.import_module("mlx_lm")
    generate: Any = importlib.import_module("mlx_lm.generate")
    model, tokenizer = mlx_lm.load(turn["model"])
    prompts = [tokenizer.encode(text) for text in PROMPTS]
    generate.batch_generate(model, tokenizer, prompts[:2], max_tokens=2)

    def work() -> dict[str, Any]:
        began_s = clock()
        answer = generate.batch_generate(model, tokenizer, prompts, max_tokens=turn["new"])
        return {"tps": answer.stats.generation_tokens / (clock() - began_s)}

    return work


WAYS = {
    "ours": ours,
    "llamacpp_sequential": llamacpp_sequential,
    "llamacpp_batched": llamacpp_batched,
    "mlx_batch_generate": mlx_batch_generate,
}


def main() -> None:
    turn = json.loads(sys.argv[1])
    work = WAYS[turn["way"]](turn)
    print("ready", flush=True)
    sys.stdin.readline()
    before_s = time.process_time()
    figures = work()
    print(json.dumps({**figures, "cpu_s": time.process_time() - before_s}), flush=True)


if __name__ == "__main__":
    main()
