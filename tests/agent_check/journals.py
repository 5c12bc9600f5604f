"""The journals beside this file, each with the orders that the law must give; and the law run over a journal.

`journals/<why>.jsonl` holds inputs, `<why>.expected.jsonl` the orders without `because` and `reason`. They are written
by hand from the brief's rules, never recorded from the law.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oarbank_agent_check import core, journal
from oarbank_agent_check.actions import Action
from oarbank_agent_check.inputs import Input

FOLDER = Path(__file__).parent / "journals"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl") if not path.stem.endswith(".expected"))


def inputs(name: str) -> list[Input]:
    return list(journal.read((FOLDER / f"{name}.jsonl").read_bytes().split(b"\n")))


def expected(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{name}.expected.jsonl").read_text().splitlines()]


def judge(told: Iterable[Input]) -> list[Action]:
    """The orders, one input a step, as `replay` does it."""
    state, given = core.State(), []
    for one in told:
        state, orders = core.step(state, (one,), one.t)
        given += orders
    return given


def bare(orders: Iterable[Action]) -> list[dict[str, Any]]:
    """Orders as a journal's lines hold them, without why."""
    return [
        {key: value for key, value in journal.value_of(order).items() if key not in ("because", "reason")}
        for order in orders
    ]
