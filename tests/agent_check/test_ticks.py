"""Gains to ticks, on virtual time; and whole programs on a kernel on paper."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.readings import ProcessKey
from oarbank_agent_check.sources.ticks import Crowd, Tick, TickBook, busy_ns, busy_of_each, busy_share
from tests.agent_check.virtual_kernel import MS, S, VirtualThread, measure, runs

P, Q = ProcessKey(5, 100.0), ProcessKey(6, 100.0)
A, B, C = (P, 1), (P, 2), (Q, 1)


# (behaviour, [(moment in ms, gains in ms)], [(length, busy) in ms])
BOOK = [
    ("nothing ran", [(5, {})], [(5, 0)]),
    ("one thread", [(5, {A: 3}), (10, {A: 2})], [(5, 3), (5, 2)]),
    ("threads in lockstep count once", [(5, {A: 3, B: 3})], [(5, 3)]),
    ("threads of two processes too", [(5, {A: 3, C: 3})], [(5, 3)]),
    ("the largest gain counts", [(5, {A: 1, B: 4, C: 2})], [(5, 4)]),
    ("work that moves to another thread goes on counting", [(5, {A: 5}), (10, {B: 5})], [(5, 5), (5, 5)]),
    ("a late tick keeps its real length", [(5, {A: 5}), (45, {A: 40})], [(5, 5), (40, 40)]),
    ("a step of the clock reaches back", [(5, {A: 4}), (10, {A: 4}), (15, {A: 6})], [(5, 4), (5, 5), (5, 5)]),
    ("over several ticks", [(5, {}), (10, {}), (15, {A: 12})], [(5, 2), (5, 5), (5, 5)]),
    ("but not over 20 ms", [(5, {}), (30, {}), (35, {A: 40})], [(5, 0), (25, 25), (5, 15)]),
    ("one moment read twice is one tick", [(5, {A: 2}), (5, {A: 2})], [(5, 4)]),
]  # fmt: skip


@pytest.mark.parametrize(("behaviour", "adds", "then"), BOOK, ids=[row[0] for row in BOOK])
def test_ticks(behaviour, adds, then):
    book = TickBook(7 * S)
    for at_ms, gains in adds:
        book.add(7 * S + at_ms * MS, {thread: ms * MS for thread, ms in gains.items()})
    found = [(round(tick.dt_s * 1000, 6), round(tick.gain_s * 1000, 6)) for tick in book.ticks()]
    assert found == then, behaviour
    assert [tick.t for tick in book.ticks()] == sorted({7 + at_ms / 1000 for at_ms, _ in adds})


@pytest.mark.parametrize(
    ("gains", "crowd", "then"),
    [
        ([], None, 0),
        ([], 1.0, 0),
        ([3], 1.0, 3),
        ([3, 3], None, 3),  # nothing is known: the largest
        ([3, 3], 2.0, 3),  # side by side
        ([2, 2], 1.0, 4),  # took turns
        ([2, 2, 2], 1.0, 5),  # a tick is 5 long
        ([4, 2], 1.2, 5),
        ([4, 2], 3.0, 4),  # never less than the largest
        ([9, 2], 1.0, 9),  # a strange reading stays strange
    ],
)
def test_turns_inside_a_tick_add_up_and_threads_side_by_side_do_not(gains, crowd, then):
    assert busy_ns(gains, 5, crowd) == then


def test_each_process_is_judged_by_its_own_threads():
    assert busy_of_each({A: 3, B: 2, C: 1}, 5, None) == {P: 3, Q: 1}
    assert busy_of_each({A: 3, B: 2, C: 1}, 5, 1.0) == {P: 5, Q: 1}
    assert busy_of_each({}, 5, None) == {}


def test_a_crowd_needs_some_looks_and_forgets_slowly():
    crowd = Crowd()
    for _ in range(5):
        assert crowd.size() is None
        crowd.see(2)
    crowd.see(0)  # nobody ran: says nothing about how many run together
    crowd.see(2)
    assert crowd.size() == pytest.approx(2.0)
    for _ in range(300):
        crowd.see(1)
    assert crowd.size() == pytest.approx(1.0, abs=0.01)


def test_running_threads_are_only_asked_for_while_threads_share_ticks():
    book = TickBook(0)
    book.add(5 * MS, {A: MS})
    assert not book.watching
    book.add(10 * MS, {A: MS, B: MS})
    assert book.watching
    book.add(40 * MS, {A: MS})
    assert book.watching
    book.add(70 * MS, {A: MS})
    assert not book.watching


def test_a_tick_is_planned_to_end_within_its_longest_length_and_never_twice_the_same():
    book, chance = TickBook(3 * S), random.Random(5)
    planned = [book.due_ns(chance.random()) - 3 * S for _ in range(1000)]
    assert all(3.4 * MS < length < 4.8 * MS for length in planned)
    assert len(set(planned)) > 900
    assert book.due_ns(1.0) - 3 * S < 5 * MS


def test_lateness_is_counted_from_the_planned_end():
    book, now = TickBook(0), 0
    for late_ms in (0, 1, 2, 9, 2):
        now = book.due_ns(0.5) + late_ms * MS
        book.add(now, {})
    assert book.lateness_s() == pytest.approx((0.002, 0.009))
    assert TickBook(0).lateness_s() == (0.0, 0.0)


def test_samples_take_every_nanosecond_once():
    book, taken, gained = TickBook(0), [], 0
    chance, now = random.Random(3), 0
    for number in range(1, 200):
        now = book.due_ns(chance.random())
        gain = chance.randrange(9 * MS)
        gained += gain
        book.add(now, {A: gain})
        if number % 7 == 0:
            taken.append(book.take())
    taken.append(book.take())
    assert sum(length for length, _, _ in taken) == now
    assert sum(busy for _, busy, _ in taken) == gained
    assert sum(by_process.get(P, 0) for _, _, by_process in taken) == gained


def test_old_ticks_are_forgotten():
    book = TickBook(0, keep_ns=S)
    for number in range(1, 20_000):
        book.add(number * MS, {A: MS})
    kept = book.ticks()
    assert 1000 <= len(kept) < 6000
    assert kept[-1] == Tick(19.999, 0.001, 0.001)
    assert book.take() == (19_999 * MS, 19_999 * MS, {P: 19_999 * MS})


def test_a_share_over_no_time_is_none():
    assert busy_share([]) is None
    assert busy_share([Tick(1.0, 0.005, 0.001), Tick(1.005, 0.005, 0.002)]) == pytest.approx(0.3)


GAINS = st.dictionaries(st.sampled_from([A, B, C]), st.integers(1, 9 * MS))


@given(st.lists(st.tuples(st.integers(1, 40 * MS), GAINS)))
def test_what_one_thread_gained_is_never_lost_nor_made_up(rows):
    """The sum over ticks lies between the busiest thread's gains and everybody's, and ticks cover the time."""
    book, now, gained = TickBook(S), S, dict.fromkeys([A, B, C], 0)
    for length, gains in rows:
        now += length
        book.add(now, gains)
        for thread, gain in gains.items():
            gained[thread] += gain
    length, busy, by_process = book.take()
    assert length == now - S
    assert max(gained.values()) <= busy <= sum(gained.values())
    assert by_process.get(Q, 0) == gained[C]
    assert sum(tick.dt_s for tick in book.ticks()) == pytest.approx(length / S)


# ---- whole programs, on paper --------------------------------------------------------------------

LENGTH_S = 4.0


def lockstep(busy_ms: float, period_ms: float, *, phase_ms: int = 0, count: int = 2) -> list[VirtualThread]:
    return [
        VirtualThread(runs(period_ms, busy_ms, LENGTH_S, offset_ms=11.3), number * phase_ms * MS)
        for number in range(count)
    ]


def pool(turn_ms: float, count: int = 3) -> list[VirtualThread]:
    """Threads that take turns without a pause."""
    return [
        VirtualThread(runs(turn_ms * count, turn_ms, LENGTH_S, offset_ms=number * turn_ms)) for number in range(count)
    ]


def fresh(turn_ms: float) -> list[VirtualThread]:
    """A new thread for every turn."""
    return [VirtualThread([turn], 0, *turn) for turn in runs(turn_ms, turn_ms, LENGTH_S)]


def held(threads, **options) -> float:
    share = busy_share(measure(threads, LENGTH_S, **options))
    assert share is not None
    return share


@pytest.mark.parametrize("late_ms", [0.1, 20])
@pytest.mark.parametrize(("busy_ms", "period_ms"), [(1, 3.3333), (3, 10), (20, 66.667), (300, 1000)])
def test_an_honest_thread_at_0_3_reads_0_30(busy_ms, period_ms, late_ms):
    thread = VirtualThread(runs(period_ms, busy_ms, LENGTH_S))
    ticks = measure([thread], LENGTH_S, late_ns=round(late_ms * MS))
    assert sum(tick.gain_s for tick in ticks) == pytest.approx(thread.used_ns(round(ticks[-1].t * S)) / S, abs=0.005)
    if period_ms < 100:
        assert busy_share(ticks) == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize(("busy_ms", "period_ms"), [(1, 3.3333), (6, 20), (60, 200)])
def test_threads_in_lockstep_read_as_one(busy_ms, period_ms, count):
    assert held(lockstep(busy_ms, period_ms, count=count)) == pytest.approx(
        held(lockstep(busy_ms, period_ms, count=1)), abs=0.005
    )


@pytest.mark.parametrize(("busy_ms", "period_ms"), [(1, 3.3333), (3, 10), (6, 20), (60, 200)])
def test_lockstep_on_cpus_whose_clocks_step_apart_stays_within_half_the_margin(busy_ms, period_ms):
    """A kernel booted with skewed ticks (skew_tick=1) shows two equal threads at different moments."""
    one = held(lockstep(busy_ms, period_ms, count=1))
    assert one - 0.005 <= held(lockstep(busy_ms, period_ms, phase_ms=2)) <= one + 0.06


@pytest.mark.parametrize("turn_ms", [80, 20, 5, 2, 1, 0.3])
def test_work_that_moves_through_a_pool_of_three_reads_near_1(turn_ms):
    assert 0.85 < held(pool(turn_ms)) <= 1.0


@pytest.mark.parametrize(("turn_ms", "at_least"), [(80, 0.96), (20, 0.9), (5, 0.8)])
def test_work_in_fresh_threads_reads_near_1(turn_ms, at_least):
    assert at_least < held(fresh(turn_ms)) <= 1.0


def test_where_nobody_tells_how_many_run_the_largest_gain_alone_counts():
    assert 0.75 < held(pool(5), watch=False) < 0.9
    assert 0.3 < held(pool(0.3), watch=False) < 0.4


def test_a_helper_that_burns_beside_an_idle_thread_shows():
    assert held([VirtualThread([]), VirtualThread(runs(10, 9, LENGTH_S))]) == pytest.approx(0.9, abs=0.01)


def test_a_clock_that_steps_by_10_ms_gives_the_same_mean():
    thread = VirtualThread(runs(20, 6, LENGTH_S), step_ns=10 * MS)
    assert held([thread]) == pytest.approx(0.3, abs=0.01)
