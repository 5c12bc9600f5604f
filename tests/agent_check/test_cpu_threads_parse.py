"""Text of /proc to numbers, and readings of thread clocks to gains."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.cpu_threads_parse import (
    ENDED,
    Ledger,
    ProcessReading,
    parse_schedstat,
    parse_stat_cpu,
    parse_stat_state,
)

P = ProcessKey(5, 100.0)
Q = ProcessKey(6, 100.0)
BLIND = Unknown("hidden. Run as its owner.")
STAT = b"6359 (a) b (c)) R 6318 6314 3928 0 -1 4228108 1946 0 0 0 357 43 0 0 20 0 5 0 74749 0 0 0\n"


@pytest.mark.parametrize(
    ("parse", "text", "then"),
    [
        (parse_schedstat, b"22295502 9145352 84\n", 22295502),
        (parse_schedstat, "0 0 0\n", 0),
        (parse_schedstat, b"18446744073709551615 0 1", 18446744073709551615),
        (parse_stat_cpu, STAT, 400),
        (parse_stat_cpu, STAT.decode(), 400),
        (parse_stat_state, STAT, "R"),
        (parse_stat_state, b"7 (x) S 1 ", "S"),
    ],
)
def test_what_the_kernel_writes_is_read(parse, text, then):
    assert parse(text) == then


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_schedstat, b""),
        (parse_schedstat, b"\n"),
        (parse_schedstat, b"no number"),
        (parse_stat_cpu, b""),
        (parse_stat_cpu, b"5 (x) S 1 2 3"),
        (parse_stat_cpu, b"5 (x) S 1 2 3 4 5 6 7 8 9 0 user sys"),
        (parse_stat_state, b""),
        (parse_stat_state, b"5 (x) "),
        (parse_stat_state, b"no bracket"),
    ],
)
def test_what_is_not_that_file_is_refused_with_the_documented_error(parse, text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@given(st.binary(max_size=80))
def test_any_bytes_give_a_number_or_the_documented_error(text):
    for parse in (parse_schedstat, parse_stat_cpu, parse_stat_state):
        try:
            parse(text)
        except ValueError:
            continue


def reading(total, threads, *, key=P, whole=False) -> ProcessReading:
    return ProcessReading(key, total, threads, whole)


# (behaviour, readings one after another, gains of the last one)
LEDGER = [
    ("the first reading is a baseline", [reading(90, {1: 40, 2: 50})], {}),
    ("a thread gains its difference", [reading(90, {1: 40, 2: 50}), reading(97, {1: 40, 2: 57})], {(P, 2): 7}),
    ("a thread new in a known process counts whole", [reading(9, {1: 9}), reading(14, {1: 9, 2: 5})], {(P, 2): 5}),
    ("a process born after the meter counts whole", [reading(5, {1: 5}, whole=True)], {(P, 1): 5}),
    ("its threads that ended before it was seen too", [reading(8, {1: 5}, whole=True)], {(P, 1): 5, (P, ENDED): 3}),
    ("a total that stood still is no gain", [reading(9, {1: 9}), reading(9, None)], {}),
    ("the last bit of an ended thread", [reading(9, {1: 4, 2: 5}), reading(16, {1: 4})], {(P, ENDED): 7}),
    ("a thread that came and went in between", [reading(9, {1: 9}), reading(12, {1: 9})], {(P, ENDED): 3}),
    ("two that ended together share", [reading(9, {1: 4, 2: 3, 3: 2}), reading(16, {1: 4})], {(P, ENDED): 4}),
    ("one that ended without gaining", [reading(9, {1: 4, 2: 5}), reading(9, {1: 4})], {}),
    ("a total read before its threads lags and is not made up", [reading(9, {1: 9}), reading(9, {1: 12})], {(P, 1): 3}),
    (
        "what a lagging total catches up with is not counted again",
        [reading(9, {1: 9}), reading(9, {1: 12}), reading(12, {1: 12})],
        {},
    ),
    (
        "without a process clock threads alone count",
        [reading(None, {1: 9}), reading(None, {1: 11, 2: 4})],
        {(P, 1): 2, (P, 2): 4},
    ),
    ("an ended thread is lost then", [reading(None, {1: 9, 2: 4}), reading(None, {1: 9})], {}),
    ("an id given out again is another thread", [reading(None, {2: 4}), reading(None, {2: 3})], {(P, 2): 3}),
    (
        "an unreadable moment makes a new baseline",
        [reading(9, {1: 9}), ProcessReading(P, None, None, unknown=BLIND), reading(50, {1: 50})],
        {},
    ),
    (
        "even for a process born after the meter",
        [ProcessReading(P, None, None, unknown=BLIND), reading(50, {1: 50}, whole=True)],
        {},
    ),
]


@pytest.mark.parametrize(("behaviour", "readings", "then"), LEDGER, ids=[row[0] for row in LEDGER])
def test_gains(behaviour, readings, then):
    ledger = Ledger()
    *before, last = readings
    for one in before:
        ledger.credit([one])
    assert ledger.credit([last]) == then, behaviour


def test_what_was_unknown_is_told_once():
    ledger = Ledger()
    ledger.credit([ProcessReading(P, None, None, unknown=BLIND), reading(5, {1: 5}, key=Q)])
    assert ledger.take_unknown() == {P: BLIND}
    assert ledger.take_unknown() == {}


def test_a_process_that_was_unknown_never_counts_from_its_start_again_while_it_lives():
    ledger = Ledger()
    ledger.credit([ProcessReading(P, None, None, unknown=BLIND)])
    ledger.take_unknown()
    assert ledger.credit([reading(50, {1: 50}, whole=True)]) == {}
    assert ledger.credit([reading(53, {1: 53}, whole=True)]) == {(P, 1): 3}


def test_a_closed_process_is_forgotten():
    ledger = Ledger()
    ledger.credit([reading(9, {1: 9})])
    ledger.close([P])
    assert ledger.credit([reading(20, {1: 20})]) == {}


@st.composite
def histories(draw):
    """Give what threads used at each of several moments: rows of {thread: ns}, threads come and go."""
    row: dict[int, int] = {1: draw(st.integers(0, 50))}
    ended = 0
    rows = [(ended, dict(row))]
    fresh = 2
    for _ in range(draw(st.integers(1, 12))):
        for thread in list(row):
            row[thread] += draw(st.sampled_from([0, 0, 1, 7, 4_000_000]))
            if draw(st.booleans()) and draw(st.booleans()):
                ended += row.pop(thread)
        if draw(st.booleans()):
            row[fresh] = draw(st.integers(0, 9))
            fresh += 1
        rows.append((ended, dict(row)))
    return rows


def as_reading(row) -> ProcessReading:
    ended, threads = row
    return reading(ended + sum(threads.values()), threads)


@given(histories())
def test_many_small_readings_credit_as_much_as_one_large_one(rows):
    """For each thread that lives through, and for the process as a whole, ended threads included."""
    small, large = Ledger(), Ledger()
    sums: dict = {}
    small.credit([as_reading(rows[0])])
    for row in rows[1:]:
        for thread, gain in small.credit([as_reading(row)]).items():
            assert gain > 0
            sums[thread] = sums.get(thread, 0) + gain
    large.credit([as_reading(rows[0])])
    once = large.credit([as_reading(rows[-1])])
    for thread in rows[0][1].keys() & rows[-1][1].keys():
        assert sums.get((P, thread), 0) == once.get((P, thread), 0)
    whole = as_reading(rows[-1]).total_ns - as_reading(rows[0]).total_ns
    assert small.accounts[P].credited_ns == large.accounts[P].credited_ns == whole


@given(histories(), st.randoms())
def test_the_order_in_which_threads_are_listed_or_vanish_never_makes_a_gain_negative(rows, chance):
    straight, shuffled = Ledger(), Ledger()
    for row in rows:
        threads = list(row[1].items())
        chance.shuffle(threads)
        gains = straight.credit([as_reading(row)])
        assert shuffled.credit([as_reading((row[0], dict(threads)))]) == gains
        assert all(gain > 0 for gain in gains.values())


@given(st.lists(st.dictionaries(st.integers(1, 4), st.integers(0, 20), max_size=4), min_size=2), st.booleans())
def test_not_even_nonsense_makes_a_gain_negative(rows, has_total):
    ledger = Ledger()
    for before, row in pairwise([{}, *rows]):
        total = sum(before.values()) if has_total else None
        assert all(gain > 0 for gain in ledger.credit([reading(total, row)]).values())
