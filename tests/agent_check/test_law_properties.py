"""What holds for the law whatever it hears."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_agent_check import core, journal
from oarbank_agent_check.actions import Action, Ban, Pause, Resume, SetDuty, Unban
from oarbank_agent_check.admission import GPU_JOBS
from oarbank_agent_check.inputs import Input, Job, JobEnd, Policy, Pressure, Protected, SampleSeen, Tick
from tests.agent_check.journals import judge

JOBS = ["a", "b", "c", "d"]
names = st.sampled_from(JOBS)
modules = st.sampled_from(["m", "n"])
parts = st.sampled_from([0.0, 0.004, 0.05, 0.1, 0.3, 0.4, 0.7, 1.0])
programs = st.sampled_from([None, None, "x", "y"])
steps = st.sampled_from([0.0, 0.0, 0.1, 1.0, 2.0, 2.0, 2.0, 10.0, 20.0, 30.0, 61.0, 1000.0])
one_input = st.one_of(
    st.builds(Job, st.just(0), names, modules, st.sampled_from([True, True, False]),
              st.sampled_from(["shared", "exclusive", "none"]), st.sampled_from([True, True, False])),
    st.builds(JobEnd, st.just(0), names),
    st.builds(Protected, st.just(0), st.sampled_from([True, True, False]), st.none() | parts,
              st.dictionaries(modules, parts, max_size=1), programs),
    st.builds(Pressure, st.just(0), st.sampled_from([None, -1.0, 0.0, 0.5, 1.0, 1.2, 2.0, 9.0]), programs),
    st.builds(Policy, st.just(0), st.sampled_from([*GPU_JOBS, "certified"])),
    st.builds(Tick, st.just(0)),
)  # fmt: skip
# Samples come in runs, so that strikes and bans are reached.
runs = st.tuples(names, st.lists(st.sampled_from([None, 0.0, 0.9, 0.9, 0.9]), min_size=1, max_size=8)).map(
    lambda run: [SampleSeen(2.0, run[0], share) for share in run[1]]
)
TWO = (Job(0.0, name, "m", True, "shared", True) for name in JOBS[:2])
BEGIN = [Policy(0.0, "certified"), Protected(0.0, True, 0.4), *TWO]


@st.composite
def told(draw: st.DrawFn) -> list[Input]:
    """A journal's inputs; most begin with two jobs beside a program."""
    pieces: list[list[Input]] = draw(st.lists(one_input.map(lambda one: [one]) | runs, max_size=25))
    t = 0.0
    given: list[Input] = list(BEGIN) if draw(st.integers(0, 3)) else []
    for piece in pieces:
        t += draw(steps)
        for one in piece:
            t += one.t
            fields = {name: getattr(one, name) for name in one.__dataclass_fields__}
            given.append(type(one)(**{**fields, "t": t}))
    return given


def lines(orders: list[Action]) -> list[str]:
    return [journal.line_of(order) for order in orders]


def stepped(inputs: list[Input]) -> Iterator[tuple[core.State, tuple[Action, ...]]]:
    state = core.State()
    for one in inputs:
        state, orders = core.step(state, (one,), one.t)
        yield state, orders


@given(told())
def test_no_budget_is_ever_above_its_level(inputs):
    for state, _ in stepped(inputs):
        for beside in state.programs.values():
            assert all(0 <= budget.left <= budget.level for budget in beside.budgets.values())


@given(told())
def test_the_duties_never_add_up_to_more_than_the_largest_budget(inputs):
    for state, _ in stepped(inputs):
        if state.rule != "certified" or not state.programs:
            assert all(job.duty is None for job in state.jobs.values() if job.phase == "running" and job.paused is None)
            continue
        left = {
            job.told.module: min(beside.left(job.told.module) or 0 for beside in state.programs.values())
            for job in state.jobs.values()
        }
        # One that is held without an end keeps what it had when it was held: it may not run.
        may_run = [
            job for job in state.jobs.values()
            if job.phase == "running" and job.told.gpu_use != "none" and job.told.module not in state.bans
            and (job.paused is None or job.paused.until is not None)
        ]  # fmt: skip
        assert all(job.duty is not None for job in may_run)
        assert sum(job.duty or 0 for job in may_run) <= max(left.values(), default=0)


@given(told())
def test_a_duty_is_ordered_on_change_alone_and_only_where_it_may_be(inputs):
    jobs: dict[str, Job] = {}
    duties: dict[str, float | None] = {}
    banned: set[str] = set()
    state = core.State()
    for one in inputs:
        if isinstance(one, Job) and one.job not in state.jobs:
            jobs[one.job] = one
            duties.pop(one.job, None)
        state, orders = core.step(state, (one,), one.t)
        for order in orders:
            if isinstance(order, Ban):
                banned.add(order.module)
            elif isinstance(order, Unban):
                banned.discard(order.module)
            elif isinstance(order, SetDuty):
                job = jobs[order.job]
                assert duties.get(order.job) != order.duty
                assert job.cooperative
                assert job.gpu_use != "none"
                assert order.duty is None or (job.module not in banned and 0 <= order.duty <= 1)
                duties[order.job] = order.duty
        for name, duty in duties.items():
            assert name not in state.jobs or core.document(state, name).get("gpu_duty") == duty


@given(told())
def test_pauses_and_resumes_alternate_and_a_new_pause_says_something_new(inputs):
    paused: dict[str, tuple[float | None, str]] = {}
    last = -1.0
    for one, (_, orders) in zip(inputs, stepped(inputs), strict=True):
        for order in orders:  # what fell due before a job's end comes with it
            assert last <= order.t <= one.t
            last = order.t
            if isinstance(order, Pause):
                assert paused.get(order.job) != (order.until, order.reason)
                assert order.until is None or order.until > order.t
                paused[order.job] = (order.until, order.reason)
            elif isinstance(order, Resume):
                del paused[order.job]
        if isinstance(one, JobEnd):
            paused.pop(one.job, None)


@given(told())
def test_the_same_inputs_give_the_same_bytes(inputs):
    assert lines(judge(inputs)) == lines(judge(inputs))


@given(told(), st.lists(st.tuples(st.floats(0, 1), st.integers(1, 3)), max_size=8))
def test_ticks_change_nothing(inputs, places):
    more = list(inputs)
    for where, count in places:
        at = int(where * len(more))
        before = more[at - 1].t if at else 0.0
        after = more[at].t if at < len(more) else before
        for i in range(count):
            more.insert(at + i, Tick(min(before + (after - before) * (i + 1) / count, after)))
    every_second = [Tick(i * 10.0) for i in range(30)]
    merged = sorted([*more, *every_second], key=lambda one: one.t)
    end = [Tick(max(one.t for one in merged))]
    assert lines(judge([*more, *end])) == lines(judge([*inputs, *end]))
    assert lines(judge([*merged, *end])) == lines(judge([*inputs, *end]))


@given(told())
def test_one_step_or_many_is_the_same(inputs):
    now = inputs[-1].t if inputs else 0.0

    assert list(core.step(core.State(), inputs, now)[1]) == judge(inputs)


@settings(max_examples=50)
@given(told())
def test_a_state_written_and_read_in_the_middle_changes_nothing(inputs):
    state, given_ = core.State(), []
    for one in inputs:
        state = core.state_from_json(json.loads(json.dumps(core.state_to_json(state), allow_nan=False)))
        state, orders = core.step(state, (one,), one.t)
        given_ += orders
    assert lines(given_) == lines(judge(inputs))


@given(told())
def test_the_law_acts_by_itself_at_next_due_and_not_before(inputs):
    *_, state = [core.State(), *(state for state, _ in stepped(inputs))]
    due = core.next_due(state)
    if due is None:
        assert core.step(state, [], 1e9)[1] == ()
        return
    assert state.now is not None
    assert due > state.now
    between = state.now + (due - state.now) / 2
    assert core.step(state, [], between)[1] == ()
    later, _ = core.step(state, [], due)
    after = core.next_due(later)
    assert after is None or after > due
