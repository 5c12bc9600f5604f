"""A spec envelope or a payload in, a `Job` or a `Refusal` out. Pure.

Every limit on a payload is applied here, and every reason that blames the job itself (exit 2): a place, what must hold
there, what was found. `normalised` gives the one form of a payload from which keys are made. Fields of the envelope and
the payload that nobody here knows are left alone; in a prompt, which a person writes, they are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from oarbank_llmserve.job import (
    BACKENDS,
    DEFAULT_TOKENS,
    MAX_ID_CHARS,
    MAX_MESSAGES,
    MAX_PER_JOB,
    MAX_PROMPT_CHARS,
    MAX_PROMPTS,
    MAX_SEED,
    MAX_STOP_CHARS,
    MAX_STOPS,
    MAX_TOKENS,
    SELFTEST_PROMPTS,
    SELFTEST_TOKENS,
    SPEC_SCHEMA,
    STAGES,
    Job,
    Prompt,
    Refusal,
    bad_spec,
)
from oarbank_sdk.paths import portable_path_fault

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "seed")
FOR_EACH = ("max_tokens", "stop", *SAMPLING)  # a batch gives the default, a prompt may say its own
MOST_PROMPTS = {"selftest": SELFTEST_PROMPTS, "batch": MAX_PROMPTS}
MOST_TOKENS = {"selftest": SELFTEST_TOKENS, "batch": MAX_TOKENS}

_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]*)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
_EXACT = 2**53


class Bad(Exception):
    """One thing wrong: where, what must hold, what was found."""

    def __init__(self, where: str, must: str, *found: Any) -> None:
        self.where = where
        self.what = must + (f"; found {shown(found[0])}" if found else "")
        super().__init__(f"{where}: {self.what}")


def read_spec(envelope: Any) -> Job | Refusal:
    """The job in a spec envelope."""
    try:
        return _spec(envelope)
    except Bad as bad:
        return bad_spec(str(bad))


def read_payload(stage: str, payload: Any, module_version: str = "0.0.0") -> Job | Refusal:
    """The job in a payload for `stage`."""
    try:
        return checked(stage, payload, module_version)
    except Bad as bad:
        return bad_spec(str(bad))


def _spec(envelope: Any) -> Job:
    if not isinstance(envelope, dict):
        raise Bad("spec", "must be an object", envelope)
    if envelope.get("schema") != SPEC_SCHEMA:
        raise Bad("spec: /schema", f"must be {SPEC_SCHEMA}", envelope.get("schema"))
    version = envelope.get("module_version")
    if not isinstance(version, str) or not _VERSION.fullmatch(version) or len(version) > 64:
        raise Bad("spec: /module_version", "must be a version such as 0.1.0", version)
    stage = envelope.get("stage")
    stage = STAGES[0] if stage is None else stage
    if stage not in STAGES:
        raise Bad("spec: /stage", f"must be one of {', '.join(STAGES)}", stage)
    return checked(stage, envelope.get("payload"), version)


def checked(stage: str, payload: Any, version: str = "0.0.0") -> Job:
    """`read_payload` for callers who want the place apart: raises `Bad`."""
    if not isinstance(payload, dict):
        raise Bad("payload", "must be an object", payload)
    prompts = _prompts(stage, payload)
    whole(payload, "per_job", 1, MAX_PER_JOB)  # the operation's; a queue may hand it down
    backend = payload.get("backend", "stub" if stage == "selftest" else "auto")
    if backend not in BACKENDS:
        raise Bad("payload: /backend", f"must be one of {', '.join(BACKENDS)}", backend)
    if stage == "selftest" and backend != "stub":
        raise Bad("payload: /backend", "must be stub in the stage selftest", backend)
    model = _model_name(payload.get("model"))
    if model is None and backend != "stub":
        raise Bad("payload: /model", f"must name a model for backend {backend}; nothing found")
    longest_ms = number(payload, "longest_ms", 1, 60_000)
    memory_gb = number(payload, "memory_gb", 0.01, 1024)
    longest_s = None if longest_ms is None else longest_ms / 1000
    return Job(stage, prompts, backend, model, longest_s, memory_gb, version)


def _prompts(stage: str, payload: dict[str, Any]) -> tuple[Prompt, ...]:
    values = payload.get("prompts")
    if not isinstance(values, list):
        raise Bad("payload: /prompts", "must be a list of prompts", values)
    most = MOST_PROMPTS[stage]
    if not 1 <= len(values) <= most:
        raise Bad("payload: /prompts", f"must hold 1 to {most} prompts", len(values))
    defaults = _for_each(payload, "payload: ", MOST_TOKENS[stage])
    defaults.setdefault("max_tokens", min(DEFAULT_TOKENS, MOST_TOKENS[stage]))
    prompts = tuple(_prompt(stage, value, index, defaults) for index, value in enumerate(values))
    seen: set[str | int] = set()
    for index, prompt in enumerate(prompts):
        if prompt.id is not None and prompt.id in seen:
            raise Bad(f"payload: /prompts/{index}/id", "must be no other prompt's id too", prompt.id)
        if prompt.id is not None:
            seen.add(prompt.id)
    return prompts


def _prompt(stage: str, value: Any, index: int, defaults: Mapping[str, Any]) -> Prompt:
    where = f"payload: /prompts/{index}"
    given = _forms(value, where)
    at = where if isinstance(value, (str, list)) else f"{where}/{'messages' if 'messages' in given else 'prompt'}"
    own = {**defaults, "seed": defaults.get("seed", 0) + index, **_for_each(given, f"{where}", MOST_TOKENS[stage])}
    named = _id(given.get("id"), f"{where}/id")
    if stage == "selftest" and ("messages" in given or own.get("temperature")):
        raise Bad(where, "must be text, completed at temperature 0, in the stage selftest")
    if "messages" in given:
        return Prompt(messages=_messages(given["messages"], at), id=named, **own)
    return Prompt(text=_text(given.get("prompt"), at, MAX_PROMPT_CHARS), id=named, **own)


def _forms(value: Any, where: str) -> dict[str, Any]:
    """The three forms of a prompt as one: an object."""
    if isinstance(value, list):
        return {"messages": value}
    if not isinstance(value, dict):
        return {"prompt": value}
    unknown = sorted(map(str, value.keys() - {"id", "prompt", "messages", *FOR_EACH}))
    if unknown:
        raise Bad(f"{where}/{shown(unknown[0])}", "must be a key of a prompt; nobody here knows it")
    if ("prompt" in value) == ("messages" in value):
        raise Bad(where, "must hold either prompt or messages", "both" if "prompt" in value else "neither")
    return value


def _messages(value: Any, where: str) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_MESSAGES:
        raise Bad(where, f"must be a list of 1 to {MAX_MESSAGES} messages", value)
    messages = []
    for index, message in enumerate(value):
        at = f"{where}/{index}"
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            raise Bad(at, "must be an object of role and content alone", message)
        role = _text(message["role"], f"{at}/role", 40)
        if not role:
            raise Bad(f"{at}/role", "must not be empty")
        messages.append({"role": role, "content": _text(message["content"], f"{at}/content", MAX_PROMPT_CHARS)})
    if (chars := sum(len(message["content"]) for message in messages)) > MAX_PROMPT_CHARS:
        raise Bad(where, f"must be at most {MAX_PROMPT_CHARS} characters in all", chars)
    return tuple(messages)


def _id(value: Any, where: str) -> str | int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT):
        return value
    if isinstance(value, str):
        return _text(value, where, MAX_ID_CHARS)
    raise Bad(where, "must be text or a whole number", value)


def _for_each(given: Mapping[str, Any], where: str, most_tokens: int) -> dict[str, Any]:
    """What a batch or a prompt says about its completions; what it does not say is left out."""
    values = {
        "max_tokens": whole(given, "max_tokens", 1, most_tokens, where),
        "stop": None if given.get("stop") is None else _stops(given["stop"], f"{where}/stop"),
        "temperature": number(given, "temperature", 0, 10, where),
        "top_p": number(given, "top_p", 0.000_001, 1, where),
        "top_k": whole(given, "top_k", 0, 1_000_000, where),
        "min_p": number(given, "min_p", 0, 1, where),
        "seed": whole(given, "seed", 0, MAX_SEED, where),
    }
    return {key: value for key, value in values.items() if value is not None}


def _stops(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Bad(where, "must be a list of text", value)
    if len(value) > MAX_STOPS:
        raise Bad(where, f"must hold 0 to {MAX_STOPS} texts", len(value))
    stops = tuple(_text(one, f"{where}/{index}", MAX_STOP_CHARS) for index, one in enumerate(value))
    if "" in stops:
        raise Bad(f"{where}/{stops.index('')}", "must not be empty")
    return stops


def _text(value: Any, where: str, most: int) -> str:
    if not isinstance(value, str):
        raise Bad(where, "must be text", value)
    if len(value) > most:
        raise Bad(where, f"must be at most {most} characters", len(value))
    if _SURROGATE.search(value):
        raise Bad(where, "must be whole characters; found half of a surrogate pair")
    return value


def whole(given: Mapping[str, Any], key: str, least: int, most: int, where: str = "payload: ") -> int | None:
    """The whole number at `key`, None when it is absent or null. Raises `Bad`."""
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Bad(f"{where}/{key}", f"must be a whole number from {least} to {most}", value)
    return value


def number(given: Mapping[str, Any], key: str, least: float, most: float, where: str = "payload: ") -> float | None:
    """The number at `key`, None when it is absent or null. Raises `Bad`."""
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise Bad(f"{where}/{key}", f"must be a number from {least:g} to {most:g}", value)
    return float(value) if math.isfinite(value) else None


def _model_name(value: Any) -> str | None:
    """One portable name, so that no path leaves the models folder."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Bad("payload: /model", "must be text", value)
    if "/" in value or "\\" in value:
        raise Bad("payload: /model", "must be a name, not a path", value)
    fault = portable_path_fault(value)
    if fault is not None:
        raise Bad("payload: /model", fault, value)
    if ".." in value:
        raise Bad("payload: /model", "must not hold ..", value)
    return value


def normalised(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The one form of a payload that `checked` took: null left out, `backend` and `max_tokens` said."""
    kept = {
        key: payload[key] for key in (*FOR_EACH, "model", "longest_ms", "memory_gb") if payload.get(key) is not None
    }
    prompts = [_without_null(prompt) for prompt in payload["prompts"]]
    defaults = {"backend": payload.get("backend", "auto"), "max_tokens": DEFAULT_TOKENS}
    return {**defaults, **kept, "prompts": prompts}


def _without_null(prompt: Any) -> Any:
    if not isinstance(prompt, dict):
        return prompt
    return {key: value for key, value in prompt.items() if value is not None}


def samples(payload: Mapping[str, Any]) -> bool:
    """Whether any prompt of a payload that `checked` took is completed at a temperature above 0."""
    return any(isinstance(own, dict) and own.get("temperature") for own in _asks(payload))


def _asks(payload: Mapping[str, Any]) -> Iterable[Any]:
    yield payload
    yield from payload["prompts"]


def shown(value: Any) -> str:
    """A found value in a line for a person: at most 80 characters, on one line."""
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else _digits(value)
    text = repr(text)[1:-1] if isinstance(value, str) else text
    return text if len(text) <= 80 else text[:77] + "..."


def _digits(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python prints no integer of thousands of digits
        return "a number of thousands of digits"
