"""The law on journals: what is ordered, when, and because of what."""

from __future__ import annotations

import json

import pytest

from oarbank_agent_check import admission, cli, core, journal
from oarbank_agent_check.actions import Pause, Resume, SetDuty, Unban
from oarbank_agent_check.inputs import Job, Policy, Pressure, Protected, SampleSeen, Tick
from oarbank_sdk.contracts.judge import judge
from tests.agent_check import journals

START = (Policy(0, "certified"), Protected(0, True, 0.3), Job(0, "a", "m", True, "shared", True))


@pytest.mark.parametrize("name", journals.NAMES)
def test_a_journal_is_judged_as_written_beside_it(name, capfd):
    assert cli.main(["replay", str(journals.FOLDER / f"{name}.jsonl")]) == 0

    lines = capfd.readouterr().out.splitlines()
    orders = [json.loads(line) for line in lines]
    without_why = [{k: v for k, v in one.items() if k not in ("because", "reason")} for one in orders]
    assert without_why == journals.expected(name)
    for line in lines:
        assert judge("agent-journal-1", line).faults == []


@pytest.mark.parametrize("name", journals.NAMES)
def test_a_journal_holds_what_the_contract_allows(name):
    for line in (journals.FOLDER / f"{name}.jsonl").read_bytes().splitlines():
        assert judge("agent-journal-1", line).faults == []


@pytest.mark.parametrize("name", journals.NAMES)
def test_every_order_says_which_inputs_led_to_it(name):
    told = journals.inputs(name)
    for order in journals.judge(told):
        assert order.because, order
        assert all(cause in told and cause.t <= order.t for cause in order.because), order
        assert [cause.t for cause in order.because] == sorted(cause.t for cause in order.because)


def test_there_are_journals_and_each_has_its_orders():
    assert len(journals.NAMES) > 40
    for name in journals.NAMES:
        assert journals.expected(name), name


def samples(t, shares, job="a"):
    return [SampleSeen(t + 2 * i, job, share) for i, share in enumerate(shares)]


def test_a_strike_names_its_samples_and_so_does_the_resume():
    told = [*START, *samples(2, [0.1, 0.5, None, 0.6]), Tick(90)]
    pause, resume = journals.judge(told)[-2:]

    assert pause == Pause(
        t=8, job="a", until=68, reason="over the duty of 0.300: 0.500, unreadable, 0.600; strike 1 of 3",
        because=tuple(told[4:7]),
    )  # fmt: skip
    assert resume == Resume(t=68, job="a", because=tuple(told[4:7]))


def test_a_duty_names_the_program_its_pressure_and_the_job():
    told = [*START, Pressure(1, 0.0), Pressure(3, 1.5), Pressure(4, 0.0)]

    assert journals.judge(told)[-1] == SetDuty(t=3, job="a", duty=0.15, because=(START[2], *START[:2], told[4]))


def test_the_control_document_holds_pause_and_duty_together():
    state, _ = core.step(core.State(), [*START, *samples(2, [0.1, 0.5, 0.5, 0.5]), Pressure(9, 1)], 10)

    assert core.document(state, "a") == {
        "gpu_duty": 0.15, "pause": True, "reason": "over the duty of 0.300: 0.500, 0.500, 0.500; strike 1 of 3",
    }  # fmt: skip
    state, _ = core.step(state, [], 69)
    assert core.document(state, "a")["gpu_duty"] < 0.15
    assert "pause" not in core.document(state, "a")
    state, _ = core.step(state, [Protected(70, False)], 70)
    assert core.document(state, "a") == core.document(state, "nobody") == {}


def test_a_waiting_job_has_no_document():
    state, _ = core.step(core.State(), [Protected(0, True, 0.3), START[2]], 0)

    assert core.document(state, "a") == {}


def test_a_restart_keeps_strikes_and_bans():
    told = [*START, *(one for t in (2, 102, 202) for one in samples(t, [0.1, 0.5, 0.5, 0.5]))]
    state, _ = core.step(core.State(), told, 210)
    text = json.dumps(core.state_to_json(state), allow_nan=False)

    again = core.state_from_json(json.loads(text))

    assert again == state
    _, orders = core.step(again, [Job(300, "b", "m", True, "shared", True)], 300)
    assert journals.bare(orders) == [{"t": 300, "kind": "hold", "job": "b"}]
    _, orders = core.step(again, [], 208 + 3600)
    assert [type(order) for order in orders] == [Unban]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("law",), 2), (("now",), "soon"), (("now",), True), (("jobs",), None), (("jobs",), [{}]), (("bans",), 3),
        (("jobs", 0, "phase"), "away"), (("jobs", 0, "duty"), 0.3), (("jobs", 0, "told"), {"t": 0, "kind": "tick"}),
        (("jobs", 0, "told"), {"t": 0, "kind": "duty"}), (("jobs", 0, "watch", "over"), [3]),
        (("jobs", 0, "watch", "strikes"), ["x"]), (("bans", "m"), None), (("bans", "m"), {"until": None}),
        (("bans", "m"), {"until": None, "reason": "r", "because": []}), (("programs", "", "clean_since"), None),
        (("programs", "", "budgets"), {"": [1]}), (("programs", "", "budgets"), {"": [1.5, 1]}),
        (("policy",), "certified"),
    ],
)  # fmt: skip
def test_a_state_that_the_law_did_not_write_is_refused_in_one_line(path, value):
    told = [*START, *samples(2, [0.1, 0.5])]
    state, _ = core.step(core.State(), told, 9)
    broken = core.state_to_json(state)
    *parents, last = path
    place = broken
    for key in parents:
        place = place[key]
    place[last] = value

    with pytest.raises(ValueError, match="the law's state: must be what it wrote itself; found a fault: ") as caught:
        core.state_from_json(broken)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, [], "x", 3, {}])
def test_no_state_at_all_is_refused_too(value):
    with pytest.raises(ValueError, match="the law's state"):
        core.state_from_json(value)


def test_time_never_goes_backwards():
    state, _ = core.step(core.State(), [], 10)

    with pytest.raises(ValueError, match=r"must not go backwards; it was 10, found 9"):
        core.step(state, [], 9)
    with pytest.raises(ValueError, match="time must not go backwards"):
        core.step(state, [Tick(9)], 12)
    with pytest.raises(ValueError, match="must be from 12 or before"):
        core.step(state, [Tick(13)], 12)


@pytest.mark.parametrize("t", [1e300, -1e13, float("inf"), float("nan")])
def test_a_time_that_no_double_counts_in_minutes_is_refused(t):
    with pytest.raises(ValueError, match="must be within 1e\\+12 s of 0"):
        core.step(core.State(), [], t)


def test_next_due_is_when_the_law_acts_by_itself():
    state, _ = core.step(core.State(), [*START, *samples(2, [0.1, 0.5, 0.5, 0.5])], 8)
    assert core.next_due(state) == 68
    state, _ = core.step(state, [Pressure(20, 0.0)], 20)
    silent = core.next_due(state)
    assert silent is not None
    assert 30 < silent < 30.001
    state, orders = core.step(state, [], silent)
    assert journals.bare(orders) == [{"t": 30, "kind": "duty", "job": "a", "duty": 0.15}]
    assert core.next_due(state) == 50
    assert core.next_due(core.State()) is None


@pytest.mark.parametrize("t", [-1e12, 0.1 + 0.2, 1e9, 1e12 - 4000])
def test_any_clock_will_do(t):
    told = [Policy(t, "certified"), Protected(t, True, 0.3), Job(t, "a", "m", True, "shared", True), Pressure(t, 1)]
    state, _ = core.step(core.State(), told, t)
    for _ in range(9):
        state, _ = core.step(state, [SampleSeen(t, "a", 1), Pressure(t, None)], t)
    state, _ = core.step(state, [Protected(1e12, False)], 1e12)

    assert core.next_due(state) in (None, t + 3600)


def test_a_known_jobs_second_word_changes_nothing():
    first = Job(0, "a", "m", True, "shared", True)
    state, _ = core.step(core.State(), [first], 0)
    again, orders = core.step(state, [Job(1, "a", "n", False, "none", False)], 1)

    assert orders == ()
    assert again.jobs == state.jobs


def test_of_several_rules_the_strictest_holds():
    assert admission.strictest(["always", "certified"]) == "certified"
    assert admission.strictest(["when_no_gpu_protected", "never", "always"]) == "never"
    with pytest.raises(ValueError, match="empty"):
        admission.strictest([])


def test_a_row_reaches_the_program_it_speaks_of_and_every_one_without_a_name():
    programs = [Protected(0, True, 0.4, program="x"), Protected(0, True, 0.4)]
    for program, left in [("x", [200, 200]), ("y", [400, 200]), (None, [200, 200])]:
        state, _ = core.step(core.State(), [*programs, Pressure(1, 1, program)], 1)
        assert [beside.left("m") for beside in state.programs.values()] == left, program


def test_a_journal_line_reads_back_to_its_input():
    more = [Protected(1, True, None, {"m": 0.5}, "x"), Pressure(2, None, "x"), SampleSeen(3, "a", 0, 0.0, 1.0, True)]
    told = [*START, *more]

    assert list(journal.read(journal.line_of(one).encode() for one in told)) == told
