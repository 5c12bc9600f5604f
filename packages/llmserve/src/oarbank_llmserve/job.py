"""What a job asks for: a spec envelope in, a `Job` or a `Refusal` out.

Every limit on a payload is here, and every reason that blames the job itself (exit 2). The file decides on values
alone: it must never open a file, look for a model or import a backend. models.py finds models, engines/ finds backends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from oarbank_sdk.paths import portable_path_fault

SHORT_NAME = "llmserve"
SPEC_SCHEMA = f"{SHORT_NAME}/spec@1"
STAGES = ("selftest", "batch")  # the first is the default one
BACKENDS = ("auto", "mlx", "llamacpp", "stub")

MAX_PROMPTS = 5000  # as many jobs as one enqueue takes
MAX_PROMPT_CHARS = 200_000  # tokenizing that much takes 0.1 s (measured, 2 GHz Xeon): no gap between safe points
MAX_TOKENS = 32_768
DEFAULT_TOKENS = 256
MAX_PER_JOB = 1000
MAX_STOPS, MAX_STOP_CHARS = 16, 200
# The self-test's texts travel inside the result, which holds 64 KiB.
SELFTEST_PROMPTS, SELFTEST_TOKENS = 16, 256

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Job:
    """What to run. `model` is a name below the models folder, or None with the stand-in."""

    stage: str
    prompts: tuple[str, ...]
    max_tokens: int  # new tokens for each prompt at most
    backend: str  # of BACKENDS
    model: str | None = None
    stop: tuple[str, ...] = ()
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


class _Bad(Exception):
    """Inside this file: where, what must hold, what was found."""

    def __init__(self, where: str, must: str, *found: Any) -> None:
        super().__init__(f"{where}: {must}" + (f"; found {_shown(found[0])}" if found else ""))


def read_spec(envelope: Any) -> Job | Refusal:
    """The job in a spec envelope. Fields that nobody here knows are left alone."""
    try:
        return _spec(envelope)
    except _Bad as bad:
        return bad_spec(str(bad))


def read_payload(stage: str, payload: Any, module_version: str = "0.0.0") -> Job | Refusal:
    """The job in a payload for `stage`."""
    try:
        return _payload(stage, payload, module_version)
    except _Bad as bad:
        return bad_spec(str(bad))


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
        return no_model("model: must be a .gguf file; found a file with another ending. Name a GGUF file")
    if backend == "llamacpp" and fits != backend:
        return no_model("model: must be a .gguf file for llamacpp; found a folder. Name the file in it")
    if backend == "mlx" and fits != backend:
        return no_model("model: must be a folder for mlx; found a .gguf file. Leave the backend out: llamacpp opens it")
    return fits


def _spec(envelope: Any) -> Job:
    if not isinstance(envelope, dict):
        raise _Bad("spec", "must be an object", envelope)
    if envelope.get("schema") != SPEC_SCHEMA:
        raise _Bad("spec: /schema", f"must be {SPEC_SCHEMA}", envelope.get("schema"))
    version = envelope.get("module_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version) or len(version) > 64:
        raise _Bad("spec: /module_version", "must be a version such as 0.1.0", version)
    stage = envelope.get("stage")
    stage = STAGES[0] if stage is None else stage
    if stage not in STAGES:
        raise _Bad("spec: /stage", f"must be one of {', '.join(STAGES)}", stage)
    return _payload(stage, envelope.get("payload"), version)


def _payload(stage: str, payload: Any, version: str) -> Job:
    if not isinstance(payload, dict):
        raise _Bad("payload", "must be an object", payload)
    selftest = stage == "selftest"
    prompts = _texts(payload, "prompts", 1, SELFTEST_PROMPTS if selftest else MAX_PROMPTS, MAX_PROMPT_CHARS)
    tokens = _count(payload, "max_tokens", DEFAULT_TOKENS, SELFTEST_TOKENS if selftest else MAX_TOKENS)
    stop = _texts(payload, "stop", 0, MAX_STOPS, MAX_STOP_CHARS) if payload.get("stop") is not None else ()
    if "" in stop:
        raise _Bad(f"payload: /stop/{stop.index('')}", "must not be empty")
    _count(payload, "per_job", 1, MAX_PER_JOB)  # the operation's; a queue may hand it down
    backend = payload.get("backend", "stub" if selftest else "auto")
    if backend not in BACKENDS:
        raise _Bad("payload: /backend", f"must be one of {', '.join(BACKENDS)}", backend)
    if selftest and backend != "stub":
        raise _Bad("payload: /backend", "must be stub in the stage selftest", backend)
    model = _model_name(payload.get("model"))
    if model is None and backend != "stub":
        raise _Bad("payload: /model", f"must name a model for backend {backend}; nothing found")
    return Job(stage, prompts, tokens, backend, model, stop, version)


def _texts(payload: dict[str, Any], key: str, least: int, most: int, chars: int) -> tuple[str, ...]:
    values = payload.get(key)
    if not isinstance(values, list):
        raise _Bad(f"payload: /{key}", "must be a list of text", values)
    if not least <= len(values) <= most:
        raise _Bad(f"payload: /{key}", f"must hold {least} to {most} texts", len(values))
    for index, value in enumerate(values):
        where = f"payload: /{key}/{index}"
        if not isinstance(value, str):
            raise _Bad(where, "must be text", value)
        if len(value) > chars:
            raise _Bad(where, f"must be at most {chars} characters", len(value))
        if _SURROGATE.search(value):
            raise _Bad(where, "must be whole characters; found half of a surrogate pair")
    return tuple(values)


def _count(payload: dict[str, Any], key: str, default: int, most: int) -> int:
    value = payload.get(key)
    if value is None:
        return min(default, most)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise _Bad(f"payload: /{key}", f"must be a whole number from 1 to {most}", value)
    return value


def _model_name(value: Any) -> str | None:
    """One portable name, so that no path leaves the models folder."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _Bad("payload: /model", "must be text", value)
    if "/" in value or "\\" in value:
        raise _Bad("payload: /model", "must be a name, not a path", value)
    fault = portable_path_fault(value)
    if fault is not None:
        raise _Bad("payload: /model", fault, value)
    if ".." in value:
        raise _Bad("payload: /model", "must not hold ..", value)
    return value


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else repr(value)
    text = repr(text)[1:-1] if isinstance(value, str) else text
    return text if len(text) <= 80 else text[:77] + "..."
