"""NVML's calls as recordings: windows, rows that can't be true, zeros, accounts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.sources.nvml_parse import FOREIGN, GpuState, Look, Row, readings, step
from tests.agent_check.recorded import gained, packed, recorded

S = 1_000_000
BEGIN = 1_700_000_000 * S


def row(pid: int, stamp_us: int, percent: int, **more: Any) -> dict[str, Any]:
    return {"pid": pid, "timeStamp": stamp_us, "smUtil": percent, "memUtil": 0, "encUtil": 0, "decUtil": 0} | more


def call(t_s: float, *rows: dict, running=(7, 8), asked: int = BEGIN, ret: Any = None) -> dict[str, Any]:
    answer = ret if ret is not None else "SUCCESS" if rows else "NOT_FOUND"
    return {"t_s": t_s, "lastSeenTimeStamp": asked, "running": list(running), "ret": answer, "samples": list(rows)}


def of(*calls: dict, pids=(7,)) -> dict[int, int | None]:
    return gained(packed({"calls": list(calls)}), *pids)


@pytest.mark.parametrize(
    ("name", "gains"),
    [
        ("nvml_one_row_per_pid.json", {7044: 240_648_800, 7180: 962_595_200, 18429: 0}),
        ("nvml_garbage_rows.json", {50554: None}),
        ("nvml_not_found_idle.json", {4321: 0}),
        ("nvml_accounting_v2.json", {500: 7_500_000_000}),
    ],
)
def test_the_handed_recordings(name, gains):
    assert gained(recorded(name), *gains) == gains


FIRST = call(0, row(7, BEGIN + S, 90))


@pytest.mark.parametrize(
    ("why", "calls", "gain_ns"),
    [
        ("the first call is the baseline", [FIRST, call(2)], 0),
        ("percent of the window since the last stamp", [FIRST, call(2, row(7, BEGIN + 3 * S, 50))], 1_000_000_000),
        ("the window ends at the largest stamp of anybody",
         [FIRST, call(2, row(7, BEGIN + 2 * S, 50), row(8, BEGIN + 5 * S, 10))], 2_000_000_000),
        ("and begins at the largest stamp of anybody",
         [call(0, row(7, BEGIN + S, 9), row(8, BEGIN + 2 * S, 9)), call(2, row(7, BEGIN + 3 * S, 50))], 500_000_000),
        ("without rows at first, the stamp that was asked with", [call(0), call(2, row(7, BEGIN + 2 * S, 25))],
         500_000_000),
        ("with no stamp at all, the time between the calls",
         [call(0, asked=0), call(2, row(7, BEGIN + 9 * S, 25), asked=0)], 500_000_000),
        ("a repeated row adds nothing", [FIRST, call(1, row(7, BEGIN + S, 88))], 0),
        ("a process without a row was idle", [FIRST, call(2, row(8, BEGIN + 3 * S, 50))], 0),
        ("a process without a context was idle", [FIRST, call(2, row(8, BEGIN + 3 * S, 50), running=[8])], 0),
        ("an ended one keeps its last row", [FIRST, call(2, row(7, BEGIN + 3 * S, 50), running=[8])], 1_000_000_000),
        ("rows of strangers move nothing",
         [FIRST, call(2, row(9, BEGIN + 99 * S, 9), row(7, BEGIN + 3 * S, 50))], 1_000_000_000),
        ("above 100 percent moves nothing",
         [FIRST, call(2, row(8, BEGIN + 99 * S, 101), row(7, BEGIN + 3 * S, 50))], 1_000_000_000),
        ("a stamp far ahead moves nothing",
         [FIRST, call(2, row(8, BEGIN + 9999 * S, 9), row(7, BEGIN + 3 * S, 50))], 1_000_000_000),
        ("a blank is no percentage", [FIRST, call(2, row(7, BEGIN + 3 * S, 2147483632))], None),
        ("an impossible other engine spoils its row", [FIRST, call(2, row(7, BEGIN + 3 * S, 0, encUtil=3313))], None),
        ("a row without a stamp says nothing", [FIRST, call(2, {"pid": 7, "smUtil": 4})], None),
        ("only strangers' rows: the GPU is unknown", [FIRST, call(2, row(645400, BEGIN + 3 * S, 50))], None),
        ("a refusal is unknown", [FIRST, call(2, ret="NOT_SUPPORTED")], None),
        ("a refusal with nobody in the list", [FIRST, call(2, ret="NOT_SUPPORTED", running=[])], None),
        ("a refusal that is others' alone", [FIRST, call(2, ret="NOT_SUPPORTED", running=[8])], 0),
        ("a refusal by number too", [FIRST, call(2, ret=15)], None),
        ("not found by number is idle", [FIRST, call(2, ret=6)], 0),
        ("success without rows is idle", [FIRST, call(2, ret="NVML_SUCCESS")], 0),
        ("a missing answer with rows counts", [FIRST, {**call(2, row(7, BEGIN + 3 * S, 50)), "ret": 0}], 1_000_000_000),
        ("samples that are no list", [FIRST, {**call(2, ret="SUCCESS"), "samples": None}], None),
        ("without the list of contexts a row is believed",
         [FIRST, {k: v for k, v in call(2, row(7, BEGIN + 3 * S, 50)).items() if k != "running"}], 1_000_000_000),
        ("three calls add up",
         [FIRST, call(2, row(7, BEGIN + 3 * S, 50)), call(4, row(7, BEGIN + 5 * S, 100))], 3_000_000_000),
        ("idle in between keeps the stamp",
         [FIRST, call(2), call(4, row(7, BEGIN + 5 * S, 25))], 1_000_000_000),
        ("no more than can have run since it was idle",
         [FIRST, call(100), call(102, row(7, BEGIN + 101 * S, 50))], 3_000_000_000),
        ("after a refusal nothing is guessed", [call(0, ret=3), call(2, row(7, BEGIN + 3 * S, 50))], None),
        ("nor is the gap counted twice",
         [FIRST, call(2, ret=3), call(4, row(7, BEGIN + 5 * S, 50))], None),
        ("calls in another order", [call(2, row(7, BEGIN + 3 * S, 50)), FIRST], 1_000_000_000),
    ],
)  # fmt: skip
def test_calls_to_gains(why, calls, gain_ns):
    assert of(*calls) == {7: gain_ns}, why


def test_the_part_after_a_refusal_is_its_own_window():
    calls = [FIRST, call(2, ret=3), call(4, row(7, BEGIN + 5 * S, 50))]
    last = readings(packed({"calls": calls}), [7])[-1]
    assert [added.busy_ns for added in last.added] == [1_000_000_000]  # of 2 s, not of the 4 s since the last stamp


def test_bounds_narrow_once_stamps_show_the_period():
    def bounds_of(*stamps: int) -> tuple[int | None, int | None]:
        rows = [row(8, BEGIN + S - stamp, 1) for stamp in stamps]
        calls = [call(0, *rows, row(7, BEGIN + S, 90), running=[7, 8]), call(2, row(7, BEGIN + 3 * S, 100))]
        [added] = readings(packed({"calls": calls}), [7])[-1].added
        return added.low_ns, added.high_ns

    slow, fast = bounds_of(), bounds_of(167_000)
    assert slow == (pytest.approx(2e9 * 0.07, rel=0.05), 2_000_000_000)
    assert fast == (pytest.approx(2e9 * 0.6, rel=0.01), 2_000_000_000)


@given(
    windows=st.lists(st.tuples(st.integers(170_000, 5 * S), st.integers(0, 100)), min_size=1, max_size=6),
    shift=st.integers(0, 1 << 50),
    pid=st.integers(1, 1 << 30),
    garbage=st.lists(st.integers(101, 1 << 32), max_size=3),
)
def test_windows_add_up_whatever_the_numbers(windows, shift, pid, garbage):
    stamp, t, expected = 1_000_000 + shift, 0.0, 0
    calls = [call(0, row(pid, stamp, 50), running=[pid], asked=0)]
    for length_us, percent in windows:
        asked, stamp, t = stamp, stamp + length_us, t + length_us / S
        expected += percent * length_us * 10
        leftovers = [row(pid + 1 + n, stamp + 7 * S, value) for n, value in enumerate(garbage)]
        calls.append(call(t, *leftovers, row(pid, stamp, percent), running=[pid], asked=asked))
    assert of(*calls, pids=[pid]) == {pid: pytest.approx(expected, abs=len(windows))}


@given(percent=st.integers(0, 100), length_us=st.integers(1000, 100 * S), idle=st.booleans(), t=st.floats(0.001, 100))
def test_bounds_hold_the_number_and_nothing_is_negative(percent, length_us, idle, t):
    between = [call(t)] if idle else []
    calls = [FIRST, *between, call(2 * t, row(7, BEGIN + S + length_us, percent))]
    for reading in readings(packed({"calls": calls}), [7, 8]):
        for added in reading.added:
            assert 0 <= (added.low_ns or 0) <= added.busy_ns
            assert added.high_ns is None or added.busy_ns <= added.high_ns


@pytest.mark.parametrize(
    ("why", "rows", "running", "living", "foreign"),
    [
        ("host pids everywhere", [900], [900], [], True),
        ("the list is of this container, the rows of the host", [900], [324], [324], True),
        ("all of them live here", [324], [324], [324], False),
        ("a process that just ended", [5], [5], [5], False),
        ("nobody uses the GPU", [], [], [], False),
    ],
)
def test_pids_of_another_namespace_make_a_gpu_unknown(why, rows, running, living, foreign):
    state = GpuState(last_us=BEGIN, t=0.0, begun=True)
    seen = tuple(Row(pid, BEGIN + S, 10) for pid in rows)
    _, part = step(state, Look(2.0, BEGIN, seen, frozenset(running), frozenset(living)), [324])
    assert ((part.unknown or {}).get(324) == FOREIGN) is foreign, why


def account(t_s: float, samples: Any, total: Any, pid: int = 5) -> dict[str, Any]:
    return {"t_s": t_s, "pid": pid, "sampleCount": samples, "sumGpuUtil": total, "isRunning": 1, "time": 0}


@pytest.mark.parametrize(
    ("why", "rows", "gain_ns"),
    [
        ("ten thousandths of a sample", [account(0, 10, 0), account(2, 12, 20_000)], 2_000_000_000),
        ("a sample is as long as the interval says", [account(0, 10, 0), account(2, 14, 20_000)], 1_000_000_000),
        ("no sample since", [account(0, 10, 50), account(2, 10, 50)], 0),
        ("a sample late: its length counts from the last one",
         [account(0, 10, 0), account(1, 10, 0), account(2, 11, 5_000)], 1_000_000_000),
        ("three readings add up", [account(0, 0, 0), account(2, 2, 10_000), account(4, 4, 30_000)], 3_000_000_000),
        ("fallen: another process has the pid", [account(0, 90, 900_000), account(2, 2, 15_000)], 1_500_000_000),
        ("more than all the time", [account(0, 10, 0), account(2, 12, 90_000)], None),
        ("not available", [account(0, 10, 0), account(2, (1 << 32) - 1, 5)], None),
        ("a key is missing", [account(0, 10, 0), {"t_s": 2, "pid": 5, "sampleCount": 12}], None),
        ("after an unknown reading it begins anew",
         [account(0, 10, 0), account(2, None, 0), account(4, 14, 30_000), account(6, 16, 40_000)], None),
        ("its account is gone", [account(0, 10, 0), account(2, 12, 5, pid=6)], None),
        ("another process comes along", [account(0, 1, 0, pid=6), account(2, 2, 15_000)], 1_500_000_000),
    ],
)  # fmt: skip
def test_accounts_to_gains(why, rows, gain_ns):
    assert gained(packed({"readings": rows}), 5) == {5: gain_ns}, why


def test_an_account_that_could_not_be_read_is_not_counted_twice():
    rows = [account(0, 10, 0), account(2, None, 0), account(4, 14, 30_000), account(6, 16, 40_000)]
    found = readings(packed({"readings": rows}), [5])
    assert [[added.busy_ns for added in reading.added] for reading in found] == [[], [], [], [1_000_000_000]]
    assert [5 in reading.unknown for reading in found] == [False, True, True, False]


@given(st.lists(st.tuples(st.integers(1, 20), st.floats(0, 1)), min_size=1, max_size=6))
def test_accounts_telescope(steps):
    t, samples, total, rows = 0, 7, 123, [account(0, 7, 123)]
    for count, share in steps:  # a sample a second
        t, samples, total = t + count, samples + count, total + round(share * count * 10_000)
        rows.append(account(t, samples, total))
    assert gained(packed({"readings": rows}), 5) == {5: pytest.approx((total - 123) * 100_000, abs=len(rows))}
