"""Payload in, Job or Refusal out: every limit has a row, and a name never becomes a path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve.job import Job, Refusal, backend_for, read_payload, read_spec

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
    ("an empty list", {"prompts": []}, "/prompts: must hold 1 to 5000 texts; found 0"),
    ("5001 prompts", {"prompts": ["a"] * 5001}, "found 5001"),
    ("a number among them", {"prompts": ["a", 7]}, "/prompts/1: must be text; found 7"),
    ("null among them", {"prompts": [None]}, "/prompts/0: must be text; found nothing"),
    ("a prompt of 200001 characters", {"prompts": ["x" * 200_001]}, "/prompts/0: must be at most 200000"),
    ("half a surrogate pair", {"prompts": ["\ud83d"]}, "/prompts/0: must be whole characters"),
    ("max_tokens 0", {**GOOD, "max_tokens": 0}, "/max_tokens"),
    ("max_tokens 32769", {**GOOD, "max_tokens": 32_769}, "/max_tokens: must be a whole number from 1 to 32768"),
    (
        "max_tokens true",
        {**GOOD, "max_tokens": True},
        "/max_tokens: must be a whole number from 1 to 32768; found true",
    ),
    ("max_tokens text", {**GOOD, "max_tokens": "9"}, "/max_tokens"),
    ("max_tokens 1.5", {**GOOD, "max_tokens": 1.5}, "/max_tokens"),
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
    assert read_payload("batch", GOOD) == Job("batch", ("a", "b"), 256, "auto", "m.gguf")


def test_absent_stage_is_the_self_test_on_the_stand_in() -> None:
    spec = {**ENVELOPE, "payload": {"prompts": ["a"], "seed": 7}, "stage": None, "priority": 3}

    assert read_spec(spec) == Job("selftest", ("a",), 256, "stub", None, (), "0.1.0")


@pytest.mark.parametrize(
    "payload",
    [
        {"prompts": ["a"], "backend": "llamacpp", "model": "m.gguf"},
        {"prompts": ["a"], "backend": "auto"},
        {"prompts": ["a"] * 17},
        {"prompts": ["a"], "max_tokens": 257},
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


@given(
    st.dictionaries(st.sampled_from(["prompts", "max_tokens", "backend", "model", "stop", "per_job", "x"]), JSON),
    st.sampled_from(["batch", "selftest"]),
)
def test_any_payload_is_a_job_or_a_refusal(payload: dict[str, Any], stage: str) -> None:
    answer = read_payload(stage, payload)

    if isinstance(answer, Refusal):
        assert len(answer.detail) < 250
    else:
        assert answer.model is None or not set(answer.model) & set("/\\:\x00")
        assert answer.backend == "stub" or answer.model is not None
