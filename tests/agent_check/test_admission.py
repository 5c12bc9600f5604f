"""Why a job waits beside a protected program: one reason, the true one, with what to do or how long it takes."""

from __future__ import annotations

from typing import Any

import pytest

from oarbank_agent_check import budget, core, journal, pressure
from oarbank_agent_check.actions import Admit, Hold
from oarbank_agent_check.admission import LEARNING_S
from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.inputs import Job, Policy, Protected
from oarbank_sdk.contracts.judge import judge

JOB = Job(0, "a", "org.m", True, "shared", True)
LEARNT = "GPU_BLOCKED: game's own speed is being learnt, which takes about 25 s while its counter moves"
ROWS = [
    # what is so                        what is told of the program            why the job waits
    ("its speed is being learnt", {"speed": "learning"}, LEARNT),
    ("its counter says nothing", {"speed": "unknown"},
     "GPU_BLOCKED: game's own speed cannot be learnt, its counter says nothing. Look at its progress file or command."),
    ("no level is given", {},
     "GPU_BLOCKED: no level is given beside game. Certify one with `oarbank-agent-check sweep`, or give a number."),
    ("others have a level", {"levels": {"org.other": 0.3}},
     "GPU_BLOCKED: no level is given for module org.m beside game, only for others. Certify one for it, or give a"
     " number."),
    ("its level is 0", {"level": 0.0}, "GPU_BLOCKED: nothing is left of the budget beside the protected program"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "reason"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_reason_is_the_true_one(told: dict[str, Any], reason: str) -> None:
    program = Protected(0, True, program="game", **told)

    _, orders = core.step(core.State(), [Policy(0, "certified"), program, JOB], 0)

    assert [(type(one), one.reason) for one in orders if isinstance(one, (Hold, Admit))] == [(Hold, reason)]
    assert judge("agent-journal-1", journal.line_of(program)).faults == []
    assert journal.input_of(journal.value_of(program)) == program


def test_reason_changes_with_what_is_told_and_a_level_ends_the_wait() -> None:
    state, said = core.State(), []
    told = [
        Policy(0, "certified"),
        JOB,
        Protected(1, True, program="game", speed="learning"),
        Protected(2, True, program="game", speed="unknown"),
        Protected(3, True, program="game", speed="unknown"),
        Protected(4, True, program="game", speed="learning"),
        Protected(5, True, 0.3, program="game"),
    ]
    for one in told:
        state, orders = core.step(state, [one], one.t)
        said += [(order.t, type(order).__name__) for order in orders]
        assert core.state_from_json(core.state_to_json(state)) == state

    # It runs free before the program comes; what speaks of it then is a pause, and each reason is said once.
    assert said == [(0, "Admit"), (1, "Pause"), (2, "Pause"), (4, "Pause"), (5, "SetDuty"), (5, "Resume")]


def test_program_without_a_name_is_still_one() -> None:
    _, orders = core.step(core.State(), [Policy(0, "certified"), Protected(0, True, speed="learning"), JOB], 0)

    (hold,) = [one for one in orders if isinstance(one, Hold)]
    assert "the protected program's own speed is being learnt" in hold.reason


def test_time_that_is_named_is_about_what_learning_takes() -> None:
    takes_s = pressure.SETTLE_S + pressure.WINDOW_S + SAMPLE_S

    assert takes_s <= LEARNING_S <= 1.2 * takes_s
    assert pressure.WINDOW_S >= budget.HALVE_S
