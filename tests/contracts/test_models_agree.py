"""A schema and the model generated from it accept the same documents, in both of the model's modes."""

from __future__ import annotations

import pytest

from oarbank_sdk import contracts, strictjson
from oarbank_sdk.contracts import catalogue
from tests.contracts import agreement, examples

KINDS = catalogue.kinds()


@pytest.mark.parametrize("kind", KINDS)
def test_schema_and_model_agree_on_every_example(kind: str) -> None:
    judged, found = agreement.disagreements(kind, examples.readable(kind))

    assert judged >= 10
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_schema_and_model_agree_on_damaged_examples(kind: str) -> None:
    judged, found = agreement.disagreements(kind, agreement.damaged(examples.readable(kind), 400, start=21))

    assert judged > 300
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_schema_and_model_agree_on_drawn_documents_and_their_damage(kind: str) -> None:
    pool = agreement.draw_pool(kind, 4, start=3)

    judged, found = agreement.disagreements(kind, [*pool, *agreement.damaged(pool, 200, start=22)])

    assert judged > 100
    assert found == []


@pytest.mark.parametrize("kind", KINDS)
def test_damage_yields_documents_on_both_sides_of_the_border(kind: str) -> None:
    judges = agreement.Judges(kind)
    verdicts = [
        judges.validator.is_valid(strictjson.read(agreement.json.dumps(document))[0])
        for document in agreement.damaged(examples.readable(kind), 60, start=23)
    ]

    assert {True, False} == set(verdicts)


def test_a_model_that_is_laxer_than_its_schema_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lax(contracts.RunnerControl):
        gpu_duty: float | None = None

    monkeypatch.setattr(contracts, "RunnerControl", Lax, raising=False)

    _, found = agreement.disagreements("runner-control-1", [{"seq": 1, "stop": True, "gpu_duty": "0.3", "x": [1]}])

    assert found == [("python: schema refuses, model accepts", {"seq": 1, "gpu_duty": "0.3"})]
