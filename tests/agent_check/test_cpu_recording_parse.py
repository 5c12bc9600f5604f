"""Recordings of CPU clocks: which clock covers the process, and what is unknown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agent_check.recorded import gained, packed, recorded

MS = 1_000_000


def stat(user: int, system: int, *, pid: int = 42, name: str = "a (b) c", start: int = 8888, state: str = "R") -> str:
    return f"{pid} ({name}) {state} 1 42 42 0 -1 4194304 100 0 0 0 {user} {system} 0 0 20 0 4 0 {start} 1 1"


def linux(*readings: dict[str, Any], **head: Any) -> list[bytes]:
    return packed({"clk_tck": 100, **head, "readings": [{"t_s": 2 * n, **one} for n, one in enumerate(readings)]})


def mac(*readings: dict[str, Any], **head: Any) -> list[bytes]:
    return packed({**head, "readings": [{"t_s": 2 * n, **one} for n, one in enumerate(readings)]})


def ticks(user: Any, system: Any, **more: Any) -> dict[str, Any]:
    return {"pti_total_user": user, "pti_total_system": system, **more}


def test_the_handed_recording():
    assert gained(recorded("cpu_linux_stat.json"), 42) == {42: 1_200_000_000}


@pytest.mark.parametrize(
    ("why", "document", "gain_ns"),
    [
        ("user and system ticks of 10 ms", linux({"stat": stat(1, 2)}, {"stat": stat(11, 7)}), 150 * MS),
        ("other ticks", linux({"stat": stat(0, 0)}, {"stat": stat(1, 0)}, clk_tck=1000), 1 * MS),
        ("no word about ticks: 10 ms", packed({"readings": [{"t_s": 0, "stat": stat(0, 0)}, {"t_s": 2,
         "stat": stat(3, 0)}]}), 30 * MS),
        ("ticks of no length", linux({"stat": stat(0, 0)}, {"stat": stat(1, 0)}, clk_tck=0), None),
        ("a name with brackets and blanks",
         linux({"stat": stat(1, 2, name=") R 1 ((x) y")}, {"stat": stat(11, 7, name=") R 1 ((x) y")}), 150 * MS),
        ("idle", linux({"stat": stat(5, 5)}, {"stat": stat(5, 5)}), 0),
        ("three readings", linux({"stat": stat(1, 0)}, {"stat": stat(4, 0)}, {"stat": stat(9, 0)}), 80 * MS),
        ("threads that ended are in stat, not in the tasks",
         linux({"stat": stat(10, 0), "tasks": {"42": "5 1 1", "43": "95 1 1"}},
               {"stat": stat(40, 0), "tasks": {"42": "6 1 1"}}), 300 * MS),
        ("the first thread ended, others run on",
         linux({"stat": stat(10, 0), "schedstat": "100 1 1", "tasks": {"42": "100 1 1", "43": "5 1 1"}},
               {"stat": stat(40, 0, state="Z"), "schedstat": "100 1 1", "tasks": {"43": "300000005 1 1"}}), 300 * MS),
        ("another process has the pid: all of it is new",
         linux({"stat": stat(900, 0)}, {"stat": stat(3, 0, start=9999)}), 30 * MS),
        ("even where it used more", linux({"stat": stat(1, 0)}, {"stat": stat(3, 0, start=9999)}), 30 * MS),
        ("a reading without the line", linux({"stat": stat(1, 0)}, {"schedstat": "5 1 1"}), None),
        ("it had ended by then", linux({"stat": stat(1, 0)}, {"stat": stat(4, 0)}, {"errno": 2}), 30 * MS),
        ("a line cut short", linux({"stat": stat(1, 0)}, {"stat": stat(4, 0)[:60]}), None),
        ("an empty line", linux({"stat": stat(1, 0)}, {"stat": ""}), None),
        ("a time below 0", linux({"stat": stat(1, 0)}, {"stat": stat(-9, 0)}), None),
        ("no stat: threads, while none ends",
         linux({"tasks": {"42": "5 1 1", "43": "7 1 1"}}, {"tasks": {"42": "9 1 1", "43": "7 1 1", "44": "3 1 1"}}), 7),
        ("and unknown when one did",
         linux({"tasks": {"42": "5 1 1", "43": "7 1 1"}}, {"tasks": {"42": "9 1 1"}}), None),
        ("damaged threads", linux({"tasks": {"42": "5 1 1"}}, {"tasks": {"42": "many"}}), None),
        ("the first thread alone is not the process", linux({"schedstat": "5 1 1"}, {"schedstat": "9 1 1"}), None),
        ("macOS counts in its own ticks",
         mac(ticks(24, 0), ticks(24_000_024, 12_000_000), hw_tbfrequency=24_000_000), 1_500 * MS),
        ("on Intel a tick is a nanosecond", mac(ticks(1, 1), ticks(5, 6), hw_tbfrequency=1_000_000_000), 9),
        ("macOS without the length of a tick", mac(ticks(0, 0), ticks(24, 0)), None),
        ("macOS with a tick of no length", mac(ticks(0, 0), ticks(24, 0), hw_tbfrequency=0), None),
        ("a missing part", mac(ticks(0, 0), {"pti_total_user": 24}, hw_tbfrequency=24_000_000), None),
        ("a part that is no number", mac(ticks(0, 0), ticks("24", 0), hw_tbfrequency=24_000_000), None),
        ("a fallen clock is another process", mac(ticks(9 * 10**9, 0), ticks(24_000_000, 0), hw_tbfrequency=24_000_000),
         1_000 * MS),
        ("three macOS readings", mac(ticks(0, 0), ticks(24, 0), ticks(24, 48), hw_tbfrequency=24_000_000), 3_000),
    ],
)  # fmt: skip
def test_readings_to_gains(why, document, gain_ns):
    assert gained(document, 42) == {42: gain_ns}, why


@pytest.mark.parametrize("pids", [(42, 43), (43,)])
def test_linux_times_belong_to_the_pid_in_the_line(pids):
    found = gained(linux({"stat": stat(0, 0)}, {"stat": stat(1, 0)}), *pids)
    assert found == {pid: 10 * MS if pid == 42 else 0 for pid in pids}


def test_macos_times_belong_to_the_one_pid_that_was_asked_for():
    document = mac(ticks(0, 0), ticks(24, 0), hw_tbfrequency=24)
    assert gained(document, 5) == {5: 1_000 * MS}
    assert gained(document, 5, 6) == {5: None, 6: None}


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.integers(0, 1 << 40)), min_size=2, max_size=6), st.data())
def test_gains_telescope_over_any_number_of_readings(steps, data):
    frequency = data.draw(st.sampled_from([24_000_000, 1_000_000_000, 41_666_667]))
    user = system = 0
    readings = []
    for more_user, more_system in steps:
        user, system = user + more_user, system + more_system
        readings.append(ticks(user, system))
    moved = sum(a + b for a, b in steps[1:])
    exact = moved * 1_000_000_000 / frequency
    assert gained(mac(*readings, hw_tbfrequency=frequency), 9) == {9: pytest.approx(exact, rel=1e-12, abs=1)}
