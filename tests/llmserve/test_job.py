"""Payload in, Job or Refusal out: every limit has a row, and a name never becomes a path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.job import Job, Prompt, Refusal, backend_for
from oarbank_llmserve.payload import normalised, read_payload, read_spec, samples

GOOD = {"prompts": ["a", "b"], "model": "m.gguf"}
ENVELOPE = {
    "envelope": 1,
    "schema": "llmserve/spec@1",
    "module_id": "dev.oarbank.llmserve",
    "module_version": "0.1.0",
    "job_key": "0" * 64,
    "payload": GOOD,
    "stage": "batch",
}

BAD_PAYLOADS: list[tuple[str, Any, str]] = [
    # behaviour                     payload                                          where it is refused
    ("nothing", None, "payload: must be an object"),
    ("a list", [], "payload: must be an object"),
    ("no prompts", {"model": "m"}, "/prompts: must be a list"),
    ("prompts are text", {"prompts": "hello"}, "/prompts: must be a list"),
    ("prompts are null", {"prompts": None}, "/prompts: must be a list"),
    ("an empty list", {"prompts": []}, "/prompts: must hold 1 to 5000 prompts; found 0"),
    ("5001 prompts", {"prompts": ["a"] * 5001}, "found 5001"),
    ("a number among them", {"prompts": ["a", 7]}, "/prompts/1/prompt: must be text; found 7"),
    ("null among them", {"prompts": [None]}, "/prompts/0/prompt: must be text; found nothing"),
    ("true among them", {"prompts": [True]}, "/prompts/0/prompt: must be text; found true"),
    ("a prompt of 200001 characters", {"prompts": ["x" * 200_001]}, "/prompts/0: must be at most 200000"),
    ("half a surrogate pair", {"prompts": ["\ud83d"]}, "/prompts/0: must be whole characters"),
    ("a conversation of nothing", {"prompts": [[]]}, "/prompts/0: must be a list of 1 to 1000 messages"),
    ("a message that is text", {"prompts": [["hi"]]}, "/prompts/0/0: must be an object of role and content alone"),
    ("a message without a role", {"prompts": [[{"content": "x"}]]}, "/prompts/0/0: must be an object of role"),
    (
        "a message with a name",
        {"prompts": [[{"role": "user", "content": "x", "name": "y"}]]},
        "/prompts/0/0: must be an object of role and content alone",
    ),
    ("an empty role", {"prompts": [[{"role": "", "content": "x"}]]}, "/prompts/0/0/role: must not be empty"),
    (
        "content that is a list",
        {"prompts": [[{"role": "user", "content": ["x"]}]]},
        "/prompts/0/0/content: must be text",
    ),
    (
        "a conversation of 200001 characters",
        {"prompts": [[{"role": "user", "content": "x" * 100_001}, {"role": "user", "content": "x" * 100_000}]]},
        "/prompts/0: must be at most 200000 characters in all; found 200001",
    ),
    ("an empty object", {"prompts": [{}]}, "/prompts/0: must hold either prompt or messages; found neither"),
    (
        "text and messages",
        {"prompts": [{"prompt": "a", "messages": []}]},
        "/prompts/0: must hold either prompt or messages; found both",
    ),
    (
        "a misspelt key",
        {"prompts": [{"prompt": "a", "temprature": 1}]},
        "/prompts/0/temprature: must be a key of a prompt",
    ),
    (
        "an id that is a list",
        {"prompts": [{"prompt": "a", "id": [1]}]},
        "/prompts/0/id: must be text or a whole number",
    ),
    ("an id that is true", {"prompts": [{"prompt": "a", "id": True}]}, "/prompts/0/id"),
    ("an id beyond 2^53", {"prompts": [{"prompt": "a", "id": 2**53 + 1}]}, "/prompts/0/id"),
    ("an id of 201 characters", {"prompts": [{"prompt": "a", "id": "x" * 201}]}, "/prompts/0/id: must be at most 200"),
    (
        "one id twice",
        {"prompts": [{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"}]},
        "/prompts/1/id: must be no other prompt's id too; found x",
    ),
    ("a prompt's max_tokens 0", {"prompts": [{"prompt": "a", "max_tokens": 0}]}, "/prompts/0/max_tokens"),
    ("a prompt's stop that is text", {"prompts": [{"prompt": "a", "stop": "x"}]}, "/prompts/0/stop: must be a list"),
    ("a prompt's top_p of 2", {"prompts": [{"prompt": "a", "top_p": 2}]}, "/prompts/0/top_p: must be a number from"),
    ("max_tokens 0", {**GOOD, "max_tokens": 0}, "/max_tokens"),
    ("max_tokens 32769", {**GOOD, "max_tokens": 32_769}, "/max_tokens: must be a whole number from 1 to 32768"),
    (
        "max_tokens true",
        {**GOOD, "max_tokens": True},
        "/max_tokens: must be a whole number from 1 to 32768; found true",
    ),
    ("max_tokens text", {**GOOD, "max_tokens": "9"}, "/max_tokens"),
    ("max_tokens 1.5", {**GOOD, "max_tokens": 1.5}, "/max_tokens"),
    ("temperature below 0", {**GOOD, "temperature": -0.1}, "/temperature: must be a number from 0 to 10; found -0.1"),
    ("temperature text", {**GOOD, "temperature": "hot"}, "/temperature"),
    ("temperature not a number", {**GOOD, "temperature": float("nan")}, "/temperature"),
    ("temperature without end", {**GOOD, "temperature": float("inf")}, "/temperature"),
    ("top_p 0", {**GOOD, "top_p": 0}, "/top_p"),
    ("top_k below 0", {**GOOD, "top_k": -1}, "/top_k: must be a whole number from 0 to 1000000"),
    ("top_k 1.5", {**GOOD, "top_k": 1.5}, "/top_k"),
    ("min_p above 1", {**GOOD, "min_p": 1.01}, "/min_p"),
    ("a seed below 0", {**GOOD, "seed": -1}, "/seed"),
    ("a seed beyond 2^48", {**GOOD, "seed": 2**48 + 1}, "/seed"),
    ("a seed of 5000 digits", {**GOOD, "seed": 10**5000}, "/seed"),
    ("longest_ms 0", {**GOOD, "longest_ms": 0}, "/longest_ms: must be a number from 1 to 60000"),
    ("longest_ms true", {**GOOD, "longest_ms": True}, "/longest_ms"),
    ("memory_gb 0", {**GOOD, "memory_gb": 0}, "/memory_gb: must be a number from 0.01 to 1024"),
    ("memory_gb text", {**GOOD, "memory_gb": "8GB"}, "/memory_gb"),
    ("per_job 0", {**GOOD, "per_job": 0}, "/per_job"),
    ("per_job 1001", {**GOOD, "per_job": 1001}, "/per_job"),
    (
        "an unknown backend",
        {**GOOD, "backend": "vllm"},
        "/backend: must be one of auto, mlx, llamacpp, stub; found vllm",
    ),
    ("backend null", {**GOOD, "backend": None}, "/backend"),
    ("backend in capitals", {**GOOD, "backend": "MLX"}, "/backend"),
    ("a backend in a list", {**GOOD, "backend": ["stub"]}, "/backend"),
    ("stop is text", {**GOOD, "stop": "x"}, "/stop: must be a list"),
    ("an empty stop", {**GOOD, "stop": ["a", ""]}, "/stop/1: must not be empty"),
    ("17 stops", {**GOOD, "stop": ["a"] * 17}, "/stop: must hold 0 to 16"),
    ("a stop of 201 characters", {**GOOD, "stop": ["a" * 201]}, "/stop/0"),
    ("no model with auto", {"prompts": ["a"]}, "/model: must name a model for backend auto"),
    ("no model with llamacpp", {"prompts": ["a"], "backend": "llamacpp"}, "/model: must name a model"),
    ("a model that is a number", {**GOOD, "model": 3}, "/model: must be text"),
]

BAD_MODELS = [
    "",
    ".",
    "..",
    "../m.gguf",
    "a/b.gguf",
    "/etc/passwd",
    "a\\b.gguf",
    "..\\m.gguf",
    "C:m.gguf",
    "c:/m.gguf",
    "m..gguf",
    ".hidden.gguf",
    "m.gguf.",
    "m.gguf ",
    " m.gguf",
    "m\n.gguf",
    "m\x00.gguf",
    "~root",
    "mödel.gguf",
    "NUL",
    "con.gguf",
    "m%2f..gguf",
    "file://m",
    "x" * 101,
]


@pytest.mark.parametrize(("payload", "where"), [row[1:] for row in BAD_PAYLOADS], ids=[row[0] for row in BAD_PAYLOADS])
def test_bad_payload_is_refused_where_it_is_bad(payload: Any, where: str) -> None:
    answer = read_payload("batch", payload)

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit, answer.fault) == ("llmserve/bad_spec", 2, "job")
    assert where in answer.detail
    assert "\n" not in answer.detail


@pytest.mark.parametrize("name", BAD_MODELS)
def test_model_name_that_is_no_plain_name_is_refused(name: str) -> None:
    answer = read_payload("batch", {**GOOD, "model": name})

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit) == ("llmserve/bad_spec", 2)
    assert "/model" in answer.detail


@pytest.mark.parametrize("name", ["m.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf", "a", "x" * 100, "mlx_model@4bit+v2"])
def test_plain_model_name_is_taken_as_it_is(name: str) -> None:
    answer = read_payload("batch", {**GOOD, "model": name})

    assert isinstance(answer, Job)
    assert answer.model == name


def test_bad_model_name_is_refused_even_where_no_model_is_opened() -> None:
    assert isinstance(read_payload("batch", {"prompts": ["a"], "backend": "stub", "model": "../x"}), Refusal)


BAD_ENVELOPES: list[tuple[str, Any, str]] = [
    ("text", "x", "spec: must be an object"),
    ("null", None, "spec: must be an object"),
    ("no schema", {k: v for k, v in ENVELOPE.items() if k != "schema"}, "spec: /schema"),
    (
        "another module's schema",
        {**ENVELOPE, "schema": "toy/spec@1"},
        "/schema: must be llmserve/spec@1; found toy/spec@1",
    ),
    ("a later schema", {**ENVELOPE, "schema": "llmserve/spec@2"}, "/schema"),
    ("no version", {k: v for k, v in ENVELOPE.items() if k != "module_version"}, "/module_version"),
    ("a short version", {**ENVELOPE, "module_version": "0.1"}, "/module_version"),
    ("an unknown stage", {**ENVELOPE, "stage": "train"}, "/stage: must be one of selftest, batch; found train"),
    ("a stage in a list", {**ENVELOPE, "stage": ["batch"]}, "/stage"),
    ("no payload", {k: v for k, v in ENVELOPE.items() if k != "payload"}, "payload: must be an object"),
]


@pytest.mark.parametrize(("envelope", "where"), [row[1:] for row in BAD_ENVELOPES], ids=[r[0] for r in BAD_ENVELOPES])
def test_bad_envelope_is_refused_where_it_is_bad(envelope: Any, where: str) -> None:
    answer = read_spec(envelope)

    assert isinstance(answer, Refusal)
    assert (answer.reason, answer.exit) == ("llmserve/bad_spec", 2)
    assert where in answer.detail


def test_smallest_payload_gets_the_defaults() -> None:
    assert read_payload("batch", GOOD) == Job("batch", (Prompt("a"), Prompt("b", seed=1)), "auto", "m.gguf")


def test_absent_stage_is_the_self_test_on_the_stand_in() -> None:
    spec = {**ENVELOPE, "payload": {"prompts": ["a"], "priority": 7}, "stage": None, "priority": 3}

    assert read_spec(spec) == Job("selftest", (Prompt("a"),), "stub", None, module_version="0.1.0")


CHAT = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
FORMS: list[tuple[str, Any, Prompt]] = [
    ("text", "a", Prompt("a", max_tokens=9, stop=("x",), temperature=0.5, seed=40)),
    ("messages", CHAT, Prompt(messages=tuple(CHAT), max_tokens=9, stop=("x",), temperature=0.5, seed=40)),
    ("an object", {"prompt": "a", "id": 7}, Prompt("a", id=7, max_tokens=9, stop=("x",), temperature=0.5, seed=40)),
    (
        "an object that says it all",
        {"id": "é", "messages": CHAT, "max_tokens": 3, "stop": [], "temperature": 0, "top_p": 0.9, "top_k": 4,
         "min_p": 0.1, "seed": 5},
        Prompt(None, tuple(CHAT), "é", 3, (), 0.0, 0.9, 4, 0.1, 5),
    ),
    ("null says nothing", {"prompt": "a", "stop": None, "seed": None, "id": None},
     Prompt("a", max_tokens=9, stop=("x",), temperature=0.5, seed=40)),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "expected"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS])
def test_prompt_has_the_batchs_defaults_unless_it_says_its_own(prompt: Any, expected: Prompt) -> None:
    payload = {**GOOD, "prompts": [prompt], "max_tokens": 9, "stop": ["x"], "temperature": 0.5, "seed": 40}
    answer = read_payload("batch", {**payload, "longest_ms": 20, "memory_gb": 2})

    assert isinstance(answer, Job)
    assert answer.prompts == (expected,)
    assert (answer.longest_s, answer.memory_gb) == (0.02, 2.0)


def test_each_prompt_draws_from_its_own_seed() -> None:
    answer = read_payload("batch", {**GOOD, "prompts": ["a", "a", {"prompt": "a", "seed": 3}], "seed": 10})

    assert isinstance(answer, Job)
    assert [prompt.seed for prompt in answer.prompts] == [10, 11, 3]


def test_one_form_says_the_defaults_and_leaves_out_what_is_null() -> None:
    assert normalised({"prompts": ["a", {"prompt": "b", "id": None}], "model": "m", "stop": None, "x": 1}) == {
        "prompts": ["a", {"prompt": "b"}],
        "model": "m",
        "backend": "auto",
        "max_tokens": 256,
    }


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"prompts": ["a"]}, False),
        ({"prompts": ["a"], "temperature": 0}, False),
        ({"prompts": ["a"], "temperature": 0.1}, True),
        ({"prompts": ["a", {"prompt": "b", "temperature": 1}]}, True),
    ],
)
def test_sampled_is_what_has_a_temperature(payload: dict[str, Any], expected: bool) -> None:
    assert samples(payload) is expected


@pytest.mark.parametrize(
    "payload",
    [
        {"prompts": ["a"], "backend": "llamacpp", "model": "m.gguf"},
        {"prompts": ["a"], "backend": "auto"},
        {"prompts": ["a"] * 17},
        {"prompts": ["a"], "max_tokens": 257},
        {"prompts": [{"prompt": "a", "max_tokens": 257}]},
        {"prompts": [CHAT]},
        {"prompts": ["a"], "temperature": 0.5},
    ],
)
def test_self_test_takes_the_stand_in_and_texts_that_fit_a_result(payload: dict[str, Any]) -> None:
    assert isinstance(read_payload("selftest", payload), Refusal)


FITS = [
    # asked       kind      answer
    ("auto", "gguf", "llamacpp"),
    ("auto", "folder", "mlx"),
    ("llamacpp", "gguf", "llamacpp"),
    ("mlx", "folder", "mlx"),
    ("auto", "other", "llmserve/no_model"),
    ("llamacpp", "folder", "llmserve/no_model"),
    ("llamacpp", "other", "llmserve/no_model"),
    ("mlx", "gguf", "llmserve/no_model"),
]


@pytest.mark.parametrize(("asked", "kind", "expected"), FITS)
def test_backend_is_the_one_that_opens_the_model(asked: str, kind: str, expected: str) -> None:
    answer = backend_for(asked, kind)

    assert (answer.reason if isinstance(answer, Refusal) else answer) == expected


def test_out_of_memory_has_the_agents_own_reason() -> None:
    assert Refusal("oom", 1, "").reason == "oom"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


KEYS = ["prompts", "max_tokens", "backend", "model", "stop", "per_job", "temperature", "seed", "longest_ms", "x"]
PROMPT_KEYS = ["prompt", "messages", "id", "stop", "top_k", "y"]


@given(
    st.dictionaries(st.sampled_from(KEYS), JSON),
    st.lists(JSON | st.dictionaries(st.sampled_from(PROMPT_KEYS), JSON) | st.text(), max_size=3),
    st.sampled_from(["batch", "selftest"]),
)
def test_any_payload_is_a_job_or_a_refusal(payload: dict[str, Any], prompts: list[Any], stage: str) -> None:
    answer = read_payload(stage, {"prompts": prompts, **payload})

    if isinstance(answer, Refusal):
        assert len(answer.detail) < 250
        assert "\n" not in answer.detail
    else:
        assert answer.model is None or not set(answer.model) & set("/\\:\x00")
        assert answer.backend == "stub" or answer.model is not None
