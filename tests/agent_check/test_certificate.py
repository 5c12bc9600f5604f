"""A certificate says what was found, follows its contract, and is void as soon as anything it rests on is another."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check import certificate
from oarbank_agent_check.certificate import HostFacts, How, Model, WorkFacts
from oarbank_agent_check.certify import Certifier, Rules
from oarbank_sdk.contracts.judge import judge
from tests.agent_check.paper_program import CURVES, PaperProgram, program, sweep

HOST = HostFacts("linux-amd64", "Linux 6.1.0", "nvidia 550.54", ("NVIDIA RTX 4000", "NVIDIA T4"), "0.1.0")
WORK = WorkFacts("org.example.standin", "1.2.3", "ab" * 32, "selftest", Model("tiny.gguf", "cd" * 32))
HOW = How("file", "nvml", "gpu", 10.0, 2.0)
EXAMPLES = Path(__file__).parents[2] / "schemas" / "examples" / "level-certificate-1"


def written(found: Certifier, host: HostFacts = HOST, work: WorkFacts = WORK) -> bytes:
    return json.dumps(
        certificate.document(found, host=host, work=work, how=HOW, made=1.79e9, took_s=60.0, seed=7), allow_nan=False
    ).encode()


def noise_only(seed: int) -> PaperProgram:
    rng = random.Random(seed)
    return PaperProgram(CURVES["game"], (math.exp(rng.gauss(0, 1)) for _ in iter(int, 1)), rng)


FOUND = sweep(program("game", "hitches", 1), Rules())
FOUND_NOTHING = sweep(noise_only(1), Rules())


@pytest.mark.parametrize(
    "paper",
    [
        pytest.param(program("game", "gaussian", 2), id="certified"),
        pytest.param(program("trainer", "heavy tails", 2), id="certified under heavy tails"),
        pytest.param(noise_only(2), id="nothing but noise"),
        pytest.param(program("trainer", "gaussian", 2, held=0.1), id="void"),
        pytest.param(
            program("trainer", "gaussian", 2, fault=lambda number: "the job ended" if number % 7 == 0 else None),
            id="with lost pairs",
        ),
    ],
)
def test_what_a_search_finds_keeps_the_contract(paper: PaperProgram) -> None:
    found = sweep(paper, Rules())

    assert judge("level-certificate-1", written(found)).faults == []
    level = json.loads(written(found))["level"]
    assert level == found.level


def test_certificate_lists_every_window() -> None:
    paper = program("game", "gaussian", 9)
    found = sweep(paper, Rules())

    listed = [pair for level in json.loads(written(found))["levels"] for pair in level["pairs"]]

    assert 2 * len(listed) == paper.windows
    assert {pair["first"]["kind"] for pair in listed} == {"paused", "running"}


def test_level_holds_where_nothing_has_changed() -> None:
    assert certificate.level_from(written(FOUND), "c.json", HOST, WORK) == FOUND.level
    swapped = replace(HOST, gpus=HOST.gpus[::-1])
    assert certificate.level_from(written(FOUND), "c.json", swapped, WORK) == FOUND.level


@pytest.mark.parametrize(
    ("host", "work", "what"),
    [
        ({"platform": "linux-arm64"}, {}, "the platform was linux-amd64 and is linux-arm64"),
        ({"os": "Linux 6.2.0"}, {}, "the operating system was Linux 6.1.0 and is Linux 6.2.0"),
        ({"driver": "nvidia 560.1"}, {}, "the GPU's driver was nvidia 550.54 and is nvidia 560.1"),
        ({"driver": None}, {}, "the GPU's driver was nvidia 550.54 and is none"),
        ({"gpus": ("NVIDIA T4",)}, {}, "the GPUs was NVIDIA RTX 4000, NVIDIA T4 and is NVIDIA T4"),
        ({"gpus": ()}, {}, "and is none"),
        ({"kit": "0.2.0"}, {}, "oarbank-agent-check was 0.1.0 and is 0.2.0"),
        ({}, {"id": "org.example.other"}, "the module was"),
        ({}, {"version": "1.2.4"}, "the module's version was 1.2.3 and is 1.2.4"),
        ({}, {"digest": "ef" * 32}, "the module's files was abababababab and is efefefefefef"),
        ({}, {"stage": "batch"}, "the stage was selftest and is batch"),
        ({}, {"model": Model("large.gguf", "cd" * 32)}, "the model was tiny.gguf"),
        ({}, {"model": Model("tiny.gguf", "ef" * 32)}, "(cdcdcdcdcdcd) and is tiny.gguf (efefefefefef)"),
        ({}, {"model": Model("tiny.gguf", None)}, "is tiny.gguf (no file)"),
        ({}, {"model": None}, "and is none"),
    ],
)
def test_it_is_void_when_one_thing_is_another(host: dict[str, Any], work: dict[str, Any], what: str) -> None:
    why = certificate.level_from(written(FOUND), "c.json", replace(HOST, **host), replace(WORK, **work))

    assert isinstance(why, str)
    assert why.startswith("c.json: must hold for what is here; it is void: ")
    assert what in why
    assert "\n" not in why
    assert why.endswith("Run `oarbank-agent-check sweep` again.")


def test_certificate_of_nothing_grants_nothing() -> None:
    why = certificate.level_from(written(FOUND_NOTHING), "c.json", HOST, WORK)

    assert isinstance(why, str)
    assert "must hold a level; found none" in why
    assert "too uneven" in why


@given(st.binary(max_size=60))
def test_bytes_that_are_no_certificate_grant_nothing(data: bytes) -> None:
    why = certificate.level_from(data, "c.json", HOST, WORK)

    assert isinstance(why, str)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("bad/[!e]*.json")), ids=lambda path: path.stem)
def test_bad_example_grants_nothing(path: Path) -> None:
    why = certificate.level_from(path.read_bytes(), "c.json", HOST, WORK)

    assert isinstance(why, str)
    assert "\n" not in why
