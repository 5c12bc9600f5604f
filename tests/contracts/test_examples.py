"""Every example beside the schemas gets the verdict that its name and `expect.json` promise, at exactly that place."""

from __future__ import annotations

import pytest

from oarbank_sdk import contracts
from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.judge import judge
from tests.contracts import examples

GOOD, BAD = examples.good(), examples.bad()


@pytest.mark.parametrize("example", GOOD, ids=lambda example: example.id)
def test_good_example_is_accepted(example: examples.Example) -> None:
    verdict = judge(example.kind, example.data)

    assert verdict.faults == []
    assert (verdict.valid, verdict.layer) == (True, "schema")


@pytest.mark.parametrize("example", GOOD, ids=lambda example: example.id)
def test_good_example_survives_its_model_unchanged(example: examples.Example) -> None:
    value = judge(example.kind, example.data).value
    model = getattr(contracts, catalogue.schema(example.kind)["title"])

    assert model.model_validate(value).to_value() == value


@pytest.mark.parametrize("example", BAD, ids=lambda example: example.id)
def test_bad_example_is_refused_at_one_place_for_one_reason(example: examples.Example) -> None:
    verdict = judge(example.kind, example.data)

    assert not verdict.valid
    assert [(fault.pointer, fault.keyword) for fault in verdict.faults] == [(example.pointer, example.keyword)]


@pytest.mark.parametrize("example", BAD, ids=lambda example: example.id)
def test_bad_example_is_told_in_one_short_sentence(example: examples.Example) -> None:
    for fault in judge(example.kind, example.data).faults:
        message = fault.message

        assert "; found " in message
        assert "\n" not in message
        assert len(message) <= 240
        assert message[0].islower()


@pytest.mark.parametrize("kind", catalogue.kinds())
def test_every_contract_has_examples_of_both_sorts_and_no_stale_expectation(kind: str) -> None:
    named = {example.name + ".json" for example in BAD if example.kind == kind}

    assert len([example for example in GOOD if example.kind == kind]) >= 3
    assert len(named) >= 8
    assert set(examples.expectations(kind)) == named


def test_no_example_belongs_to_an_unknown_contract() -> None:
    assert {example.kind for example in GOOD + BAD} == set(catalogue.kinds())
