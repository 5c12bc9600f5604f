"""A program's pressure from its counter, and whether it uses the GPU: tables and properties in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.presence import QUIET_S, Presence
from oarbank_agent_check.pressure import SETTLE_S, WINDOW_S, Pressure, Row

READ_S = 0.2
LEARNT_S = WINDOW_S + SETTLE_S + 1


@dataclass
class Program:
    """A counter in virtual time: `speed` gives steps a second, a step is `size` counts; read every 0.2 s."""

    pressure: Pressure
    now: float = 0.0
    done: float = 0.0
    size: float = 1.0
    offset: float = 0.0

    def goes(self, seconds: float, speed: float, *, working: bool, readable: bool = True) -> list[Row | None]:
        """Let time pass; a row every 2 s."""
        rows = []
        until, reads = self.now + seconds, 0
        while self.now < until - 1e-9:
            self.now += READ_S
            self.done += speed * READ_S
            reads += 1
            self.pressure.work(self.now, working)
            count = self.size * int(self.done) + self.offset
            self.pressure.hear(self.now, count if readable else None, None if readable else "no file")
            if reads % 10 == 0:
                rows.append(self.pressure.row(self.now))
        return rows


def learnt(target: float = 0.05, speed: float = 60.0, **named: float) -> Program:
    program = Program(Pressure(target), **named)
    program.goes(LEARNT_S, speed, working=False)
    assert program.pressure.baseline == pytest.approx(speed * program.size, rel=0.05)
    return program


def values(rows: list[Row | None]) -> list[float | None]:
    return [row.value for row in rows if row is not None]


@pytest.mark.parametrize(
    ("why", "speed", "target", "pressure"),
    [
        ("as fast as alone", 60.0, 0.05, 0.0),
        ("faster than alone", 66.0, 0.05, 0.0),
        ("half way to the target", 58.5, 0.05, 0.5),
        ("at the target", 57.0, 0.05, 1.0),
        ("at twice the target", 54.0, 0.05, 2.0),
        ("a generous owner", 45.0, 0.5, 0.5),
    ],
)
def test_harm_over_target(why: str, speed: float, target: float, pressure: float) -> None:
    program = learnt(target)

    rows = values(program.goes(30, speed, working=True))

    assert rows[-1] == pytest.approx(pressure, abs=0.06)


def test_first_row_comes_a_sample_after_our_work_begins_and_knows_nothing_of_the_time_before() -> None:
    program = learnt()

    first, second, *_ = program.goes(10, 30.0, working=True)

    rows = values([first, second])
    assert rows[0] == pytest.approx(10, abs=0.7)  # half as fast at a target of 5 %


def test_rate_is_over_the_last_twenty_seconds() -> None:
    program = learnt(0.5)
    program.goes(60, 60.0, working=True)

    rows = values(program.goes(WINDOW_S, 30.0, working=True))

    assert rows[0] == pytest.approx(0.1, abs=0.05)
    assert rows[4] == pytest.approx(0.5, abs=0.05)
    assert rows[-1] == pytest.approx(1.0, abs=0.05)


def test_baseline_is_learnt_while_nothing_of_ours_runs_and_at_no_other_time() -> None:
    program = Program(Pressure(0.05))

    program.goes(120, 60.0, working=True)
    assert program.pressure.baseline is None
    assert program.pressure.row(program.now) is None
    program.goes(WINDOW_S + SETTLE_S - 1, 60.0, working=False)
    assert program.pressure.baseline is None
    program.goes(2, 60.0, working=False)
    assert program.pressure.baseline == pytest.approx(60, rel=0.05)
    program.goes(120, 40.0, working=True)
    assert program.pressure.baseline == pytest.approx(60, rel=0.05)
    program.goes(LEARNT_S, 40.0, working=False)  # another scene, heavier by itself
    assert program.pressure.baseline == pytest.approx(40, rel=0.05)
    assert values(program.goes(4, 40.0, working=True))[-1] == pytest.approx(0, abs=0.3)


def test_short_jobs_one_after_the_other_are_one_time_of_work() -> None:
    program = learnt()
    rows: list[Row | None] = []
    for _ in range(20):
        rows += program.goes(1.4, 57.0, working=True)
        rows += program.goes(0.6, 57.0, working=False)
        rows.append(program.pressure.row(program.now))

    told = values(rows)
    assert len(told) >= 18
    assert told[-1] == pytest.approx(1, abs=0.1)


def test_counter_that_stands_still_is_slow_at_first_and_then_stale() -> None:
    program = learnt()
    program.goes(30, 60.0, working=True)

    rows = values(program.goes(WINDOW_S + 4, 0.0, working=True))

    assert rows[0] is not None
    assert rows[0] >= 1
    assert max(value for value in rows if value is not None) > 2
    assert rows[-1] is None
    row = program.pressure.row(program.now)
    assert row is not None
    assert row.why is not None
    assert "stands still" in row.why


def test_counter_that_cannot_be_read_is_stale_after_two_samples() -> None:
    program = learnt()
    program.goes(30, 60.0, working=True)

    rows = program.goes(10, 60.0, working=True, readable=False)

    assert values(rows)[-1] is None
    assert rows[-1] == Row(None, "no file")
    assert values(program.goes(30, 60.0, working=True))[-1] == pytest.approx(0, abs=0.1)


def test_counter_that_goes_back_belongs_to_another_run_of_the_program() -> None:
    program = learnt()
    program.goes(30, 60.0, working=True)
    program.done, program.offset = 0.0, 0.0

    program.goes(30, 60.0, working=True)

    assert program.pressure.baseline is None
    program.goes(LEARNT_S, 60.0, working=False)
    assert program.pressure.baseline == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize("step_s", [1.0, 3.0, 5.0])
def test_slow_counter_is_not_read_as_if_it_stood_still_between_two_steps(step_s: float) -> None:
    program = Program(Pressure(0.1), size=32)
    program.goes(60, 1 / step_s, working=False)
    assert program.pressure.baseline == pytest.approx(32 / step_s, rel=0.1)

    rows = values(program.goes(120, 1 / step_s, working=True))

    assert None not in rows
    assert all(value < 1 for value in rows if value is not None)
    slowed = values(program.goes(120, 0.7 / step_s, working=True))
    assert slowed[-1] is not None
    assert slowed[-1] > 2


@given(st.lists(st.tuples(st.floats(0, 120), st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_no_row_is_ever_below_zero_or_fine_without_a_baseline(parts: list[tuple[float, bool, bool]]) -> None:
    program = Program(Pressure(0.05))
    for speed, working, readable in parts:
        for row in program.goes(8, speed, working=working, readable=readable):
            if row is not None and row.value is not None:
                assert row.value >= 0
                assert program.pressure.baseline is not None


Step = Callable[[Presence, float], Presence]


def looked(there: bool) -> Step:
    return lambda presence, t: presence.looked(t, there)


def sampled(share: float | None) -> Step:
    return lambda presence, t: presence.sampled(t, share)


@pytest.mark.parametrize(
    ("why", "steps", "active"),
    [
        ("nobody is there", [(0, looked(False))], False),
        ("found and not measured yet", [(0, looked(True))], True),
        ("found quiet", [(0, looked(True)), (2, sampled(0.049))], False),
        ("found busy", [(0, looked(True)), (2, sampled(0.05))], True),
        ("cannot be measured", [(0, looked(True)), (2, sampled(None))], True),
        ("quiet for a moment", [(0, looked(True)), (2, sampled(0.5)), (4, sampled(0.0))], True),
        ("quiet for a minute", [(0, looked(True)), (2, sampled(0.5)), (2 + QUIET_S, sampled(0.0))], False),
        ("quiet and then busy", [(0, looked(True)), (2, sampled(0.0)), (90, sampled(0.1))], True),
        ("started and loading", [(0, looked(False)), (9, looked(True)), (11, sampled(0.0))], True),
        ("started and idle", [(0, looked(False)), (9, looked(True)), (9 + QUIET_S, sampled(0.0))], False),
        ("it has ended", [(0, looked(True)), (2, sampled(0.5)), (3, looked(False))], False),
        ("a sample of nobody", [(0, looked(False)), (2, sampled(None))], False),
    ],
)
def test_presence(why: str, steps: list[tuple[float, Step]], active: bool) -> None:
    presence = Presence()
    for t, step in steps:
        presence = step(presence, t)

    assert presence.active is active
