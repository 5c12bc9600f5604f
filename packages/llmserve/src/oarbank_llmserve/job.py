"""What a job is, and every way to refuse one: the words that the runner, the coordinator and the command line share.

The file decides on values alone: it must never open a file, look for a model or import a backend. payload.py reads a
job out of a spec envelope, models.py finds models, engines/ finds backends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SHORT_NAME = "llmserve"
SPEC_SCHEMA = f"{SHORT_NAME}/spec@1"
STAGES = ("selftest", "batch")  # the first is the default one
BACKENDS = ("auto", "mlx", "llamacpp", "stub")

MAX_PROMPTS = 5000  # as many jobs as one enqueue takes
MAX_PROMPT_CHARS = 200_000  # tokenizing that much takes 0.1 s (measured, 2 GHz Xeon): no gap between safe points
MAX_MESSAGES = 1000
MAX_TOKENS = 32_768
DEFAULT_TOKENS = 256
MAX_PER_JOB = 1000
MAX_STOPS, MAX_STOP_CHARS = 16, 200
MAX_ID_CHARS = 200
MAX_SEED = 2**48
# The self-test's texts travel inside the result, which holds 64 KiB.
SELFTEST_PROMPTS, SELFTEST_TOKENS = 16, 256


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt and how it is completed. Either `text` or `messages` is there."""

    text: str | None = None  # continued as it is
    messages: tuple[Mapping[str, str], ...] | None = None  # role and content, through the model's own template
    id: str | int | None = None  # the caller's
    max_tokens: int = DEFAULT_TOKENS  # new ones at most
    stop: tuple[str, ...] = ()
    temperature: float = 0.0  # 0: always the likeliest token, whatever the rest says
    top_p: float = 1.0  # 1: all of them
    top_k: int = 0  # 0: all of them
    min_p: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """What to run. `model` is a name below the models folder, or None with the stand-in."""

    stage: str
    prompts: tuple[Prompt, ...]
    backend: str  # of BACKENDS
    model: str | None = None
    longest_s: float | None = None  # the longest unit wanted; None: as the engine likes
    memory_gb: float | None = None  # what the backend may allocate at most; None: no bound from the job
    module_version: str = "0.0.0"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no result: what failure.json says, and the exit status."""

    code: str  # the part after `llmserve/`, or one of the agent's own reasons
    exit: int  # 2 the job can never succeed, 3 this node lacks something, 1 anything else
    detail: str
    fault: str | None = None  # job, host, transient

    @property
    def reason(self) -> str:
        """The reason as failure.json spells it."""
        return self.code if self.code == "oom" else f"{SHORT_NAME}/{self.code}"


def bad_spec(detail: str) -> Refusal:
    """A refusal that blames the job: the same spec can never succeed."""
    return Refusal("bad_spec", 2, detail, "job")


def no_model(detail: str) -> Refusal:
    """A refusal that blames the node: another one may have the model."""
    return Refusal("no_model", 3, detail, "host")


def no_backend(detail: str) -> Refusal:
    """A refusal that blames the node: another one may load the backend."""
    return Refusal("no_backend", 3, detail, "host")


def backend_for(backend: str, kind: str) -> str | Refusal:
    """Which backend opens a model of `kind` ("folder", "gguf", "other") when `backend` was asked for.

    `auto` goes by what each one can open and is never the stand-in: its text must not pass for inference.
    """
    fits = {"folder": "mlx", "gguf": "llamacpp"}.get(kind)
    if fits is None:
        return no_model(
            "model: must be a .gguf file or the folder of an MLX model; found a file with another ending. "
            "Name one of the two"
        )
    if backend == "llamacpp" and fits != backend:
        return no_model("model: must be a .gguf file for llamacpp; found a folder. Name the file in it")
    if backend == "mlx" and fits != backend:
        return no_model("model: must be a folder for mlx; found a .gguf file. Leave the backend out: llamacpp opens it")
    return fits
