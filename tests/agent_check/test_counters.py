"""The accounts: what counters and windows mean for a process and for its job, and what must stay unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.counters import MOST_CLOSED, Gain, GainBook, add_gains, untold
from oarbank_agent_check.gpu_readings import Added, Counter, GpuReading
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, Unknown

A, B = ProcessKey(7, 1000.0), ProcessKey(8, 1001.0)
WHY = Unknown("it hides. Ask it.")


def c(value: int, client: str = "x", engine: str = "gfx", pid: int = 7, **more) -> Counter:
    return Counter(pid, client, engine, value, **more)


def r(*counters: Counter, t: float = 0.0, **more) -> GpuReading:
    return GpuReading(t, counters, **more)


def gains(readings) -> list:
    """Give the job's gain after each reading but the first; None where it is unknown."""
    book = GainBook()
    found = [book.add(one, [A]).job.busy for one in readings]
    return [None if isinstance(gain, Unknown) else gain for gain in found[1:]]


@pytest.mark.parametrize(
    ("readings", "right"),
    [
        ([r(c(5)), r(c(9))], [4]),
        ([r(), r(c(9))], [9]),
        ([r(c(5)), r(c(5), c(2, engine="dma"))], [2]),
        ([r(c(5)), r()], [0]),
        ([r(c(5)), r(), r(c(5))], [0, 0]),  # a block that was missing once is no new client
        ([r(c(5)), r(), r(c(9))], [0, 4]),
        ([r(c(10**15), c(1, "y")), r(c(4, "y"))], [3]),
        ([r(c(5), c(5)), r(c(9), c(8))], [4]),  # two descriptors, one client, read one after the other
        ([r(c(5)), r(c(9)), r(c(7)), r(c(8)), r(c(12))], [4, 0, 0, 3]),
        ([r(c(5)), r(c(3), dips="new")], [3]),
        ([r(c(5)), r(c(9), dips="new")], [4]),
        ([r(c(5)), r(c(5 + 10 * NS_PER_S), t=1.0)], [10 * NS_PER_S]),
        ([r(c(5)), r(c(9), unknown={7: WHY}), r(c(20)), r(c(21))], [None, None, 1]),
        ([r(unknown={7: WHY}), r(c(20)), r(c(21))], [None, 1]),
        ([r(), r(added=(Added(7, 3),))], [3]),
        ([r(unknown={7: WHY}), r(added=(Added(7, 3),))], [3]),
        ([r(), r(c(2), added=(Added(7, 3), Added(7, 4)))], [9]),
        ([r(c(5)), r(c(9), outside=frozenset({"x"})), r(c(50))], [0, 0]),
        ([r(c(5)), r(gone=frozenset({7})), r(c(3))], [0, 3]),
        ([r(c(5)), r(c(0, engine="")), r(c(6)), r(c(8))], [None, None, 2]),
        ([r(c(0, engine="")), r(c(6))], [6]),
        ([r(asleep=frozenset({7})), r(asleep=frozenset({7})), r(c(9)), r(c(11))], [0, None, 2]),
        ([r(c(5)), r(asleep=frozenset({7})), r(c(9))], [0, 4]),
        ([r(), r(c(9, pid=99))], [0]),
    ],
)
def test_the_rules_of_counters(readings, right):
    assert gains(readings) == right


def ticks(value: int, total: int, client: str = "x", **more) -> Counter:
    return c(value, client, "rcs", total=total, device="0000:03", **more)


@pytest.mark.parametrize(
    ("readings", "right"),
    [
        ([r(ticks(0, 1000)), r(ticks(50, 1100), t=2.0)], [NS_PER_S]),
        # The interval as it was, not as it should have been, and the moment of the file, not of the reading.
        ([r(ticks(0, 1000)), r(ticks(50, 1100), t=4.0)], [2 * NS_PER_S]),
        ([r(ticks(0, 1000)), r(ticks(50, 1100, t=3.0), t=9.0)], [3 * NS_PER_S // 2]),
        # A new client is whole by the rate that an older one taught.
        ([r(ticks(0, 1000)), r(ticks(0, 1100), ticks(25, 1100, "y"), t=2.0)], [NS_PER_S // 2]),
        # Without any rate it is unknown once, and right from then on.
        ([r(), r(ticks(50, 1000)), r(ticks(100, 1100), t=2.0)], [None, NS_PER_S]),
        ([r(), r(ticks(0, 1000))], [0]),
        # The device's clock begins anew: no rate for this once.
        ([r(ticks(0, 1000)), r(ticks(50, 10), t=2.0), r(ticks(100, 110), t=4.0)], [None, NS_PER_S]),
        ([r(ticks(0, 1000)), r(ticks(0, 10), t=2.0)], [0]),
        # No rate is learnt from two reads at almost the same moment.
        ([r(), r(ticks(5, 1000), ticks(5, 1003, "y", t=0.0001))], [None]),
        ([r(ticks(0, 1000)), r(ticks(400, 1100, capacity=4), t=2.0)], [8 * NS_PER_S]),
        ([r(ticks(0, 1000)), r(c(9, engine="rcs"), t=2.0)], [None]),
    ],
)
def test_ticks_become_time_by_the_interval_that_was_measured(readings, right):
    assert gains(readings) == right


@pytest.mark.parametrize(
    ("start_s", "value", "right"),
    [
        (1001.0, 900_000_000, 900_000_000),
        (1001.0, 1_100_000_000, 0),  # more than it can have done in its second: inherited
        (1001.0, 2_000_000_000, 0),
        (999.0, 1, None),  # older than the watch, and in the job only now: who knows since when
        (999.0, 0, 0),
    ],
)
def test_a_process_that_joins(start_s, value, right):
    late = ProcessKey(9, start_s)
    book = GainBook()
    book.add(r(), [A], wall_s=1000.0)
    found = book.add(r(c(value, pid=9)), [A, late], wall_s=1002.0).processes[late].busy
    assert (None if isinstance(found, Unknown) else found) == right
    again = book.add(r(c(value + 5, pid=9)), [A, late], wall_s=1004.0).job.busy
    assert again == 5


def test_age_says_nothing_where_the_clocks_disagree():
    book = GainBook()
    book.add(r(), [], wall_s=1000.0)
    assert book.add(r(c(50)), [ProcessKey(7, 5000.0)], wall_s=1002.0).job.busy == 50


def test_capacity_says_how_much_a_young_process_can_have_done():
    book = GainBook()
    book.add(r(), [], wall_s=1000.0)
    assert book.add(r(c(3 * NS_PER_S, capacity=4)), [ProcessKey(7, 1001.0)], wall_s=1002.0).job.busy == 3 * NS_PER_S


def test_another_process_under_the_same_pid_is_all_new():
    book = GainBook()
    book.add(r(c(50)), [A])
    assert book.add(r(c(60)), [ProcessKey(7, 2000.0)]).job.busy == 60


def test_a_client_that_was_handed_on_within_the_job_goes_on():
    book = GainBook()
    book.add(r(c(50)), [A, B])
    both = book.add(r(c(60), c(61, pid=8)), [A, B])
    assert {key: gain.busy for key, gain in both.processes.items()} == {A: 11, B: 0}
    only_b = book.add(r(c(70, pid=8)), [B])
    assert only_b.processes == {B: Gain(9, known_ns=9)}


def test_an_unknown_process_makes_the_job_unknown_and_keeps_what_is_known():
    book = GainBook()
    book.add(r(c(5)), [A, B])
    found = book.add(r(c(9), c(3, "y", "sdma", 8), unknown={8: WHY}), [A, B])
    assert found.processes[A].busy == 4
    assert found.processes[B] == Gain(WHY, known_ns=3)
    assert found.job == Gain(WHY, known_ns=7)


def test_clients_that_others_hold_too_are_named():
    book = GainBook()
    assert book.add(r(c(5), outside=frozenset({"x"})), [A]).outside == {"x"}


def test_bounds_add_up_and_an_exact_gain_is_its_own_bounds():
    assert add_gains([Gain(4), Gain(10, 6, 12)]) == Gain(14, 10, 16)
    assert add_gains([Gain(4), Gain(10, None, 12)]) == Gain(14, 14, 16)
    assert add_gains([]) == Gain(0)
    assert add_gains([Gain(10, 6, 12), Gain(WHY, known_ns=2)]) == Gain(WHY, known_ns=2)


def test_a_device_that_nobody_reads_is_unknown_with_the_reason_of_its_source():
    assert untold(["nvml"], ["nvml", "kfd"], {}) is None
    assert untold([], [], {}) is None
    assert "nvml tells; no driver." in untold(["nvml"], ["kfd"], {"nvml": Unknown("no driver.")}).reason
    assert "was not asked. Use it too." in untold(["nvml"], [], {}).reason


def test_closed_counters_do_not_pile_up():
    book = GainBook()
    for number in range(MOST_CLOSED + 50):
        book.add(r(c(1, str(number))), [A])
    assert len(book._accounts) == MOST_CLOSED + 1  # and the one that is open
    book.add(r(), [B])
    assert book._accounts == {}


# ---- properties ----------------------------------------------------------------------------------
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**12)), max_size=30)


@given(STEPS)
def test_many_small_readings_equal_one_large_one(steps):
    values = dict.fromkeys(range(4), 7)
    readings = [r(*(c(7, str(n)) for n in values))]
    for client, step in steps:
        values[client] += step
        readings.append(r(*(c(value, str(n)) for n, value in values.items())))
    small = sum(gains(readings))
    assert small == (gains([readings[0], readings[-1]])[0] if steps else 0) == sum(step for _, step in steps)


@given(STEPS, st.permutations(range(4)))
def test_no_order_of_vanishing_clients_loses_or_takes_anything(steps, order):
    values = dict.fromkeys(range(4), 10**9)
    readings = [r(*(c(value, str(n)) for n, value in values.items()))]
    for client, step in steps:
        values[client] += step
        readings.append(r(*(c(value, str(n)) for n, value in values.items())))
    for client in order:
        del values[client]
        readings.append(r(*(c(value, str(n)) for n, value in values.items())))
    found = gains(readings)
    assert min(found) >= 0
    assert sum(found) == sum(step for _, step in steps)


@given(st.lists(st.lists(st.integers(0, 1000), min_size=3, max_size=3), min_size=2, max_size=12))
def test_whatever_counters_do_no_gain_is_negative_and_the_highest_value_is_what_counts(rows):
    found = gains([r(*(c(value, str(n)) for n, value in enumerate(row))) for row in rows])
    assert min(found) >= 0
    assert sum(found) == sum(max(column) - column[0] for column in zip(*rows, strict=True))


@given(
    st.lists(st.sets(st.sampled_from([7, 8])), min_size=2, max_size=8),
    st.lists(st.integers(0, 50), min_size=8, max_size=8),
)
def test_unknown_stays_unknown_through_every_sum(hidden, steps):
    book = GainBook()
    value = 0
    parts: list[Gain] = []
    for pids, step in zip(hidden, steps, strict=False):
        value += step
        reading = r(c(value), c(value, "y", pid=8), unknown=dict.fromkeys(pids, WHY))
        found = book.add(reading, [A, B])
        for key in (A, B):
            assert isinstance(found.processes[key].busy, Unknown) or key.pid not in pids
        assert isinstance(found.job.busy, Unknown) == any(isinstance(g.busy, Unknown) for g in found.processes.values())
        parts.append(found.job)
    if any(hidden):
        assert add_gains(parts).busy == WHY


@given(st.lists(st.integers(20, 10**6), min_size=1, max_size=20))
def test_ticks_add_up_over_uneven_intervals(steps):
    total, value, t = 0, 0, 0.0
    readings = [r(ticks(0, 0))]
    for step in steps:
        total += 19_200 * step
        value += 9_600 * step
        t += (step + 1) / 1000  # a clock of almost 19.2 MHz; steps are ms
        readings.append(r(ticks(value, total), t=t))
    assert sum(gains(readings)) == pytest.approx(t / 2 * NS_PER_S, rel=1e-6)
