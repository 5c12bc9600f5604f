"""From ticks to shares: what is counted, what accuses, what clears."""

from __future__ import annotations

import pytest

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.evidence import Wait
from oarbank_conformkit.shares import shares
from tests.conformkit.seen import OPENS, ticks

END = OPENS + 4.0


def bursts(gains: list[tuple[float, float]], dt_s: float = 0.004) -> tuple[Tick, ...]:
    """Ticks whose share follows (seconds, share) pieces."""
    made: list[Tick] = []
    for seconds, share in gains:
        for _ in range(round(seconds / dt_s)):
            made.append(Tick(OPENS + (len(made) + 1) * dt_s, dt_s, share * dt_s))
    return tuple(made)


def test_three_bounds_are_one_on_a_free_machine() -> None:
    found = shares(ticks(0.3), OPENS, END, total_s=1.2, waits=())

    assert found is not None
    assert found.mean.held == pytest.approx(0.3)
    assert found.mean.sure == pytest.approx(0.3)
    assert found.mean.wanted == pytest.approx(0.3)
    assert found.covered_s == pytest.approx(4.0)


def test_ticks_outside_the_window_do_not_count() -> None:
    before = ticks(1.0, 1.0, start=OPENS - 1.0)
    after = ticks(1.0, 1.0, start=END)

    found = shares((*before, *ticks(0.3), *after), OPENS, END, total_s=None, waits=())

    assert found is not None
    assert found.mean.held == pytest.approx(0.3, abs=0.002)


def test_no_tick_in_the_window_is_no_share() -> None:
    assert shares(ticks(0.3), END + 1, END + 5, total_s=None, waits=()) is None


@pytest.mark.parametrize(
    ("pieces", "worst"),
    [
        ([(4.0, 0.3)], 0.3),
        ([(1.3, 0.0), (1.2, 1.0), (1.5, 0.0)], 0.6),  # a mean of 0.3, and all of it at once
        ([(1.2, 1.0), (2.8, 0.0)], 0.6),  # at the beginning
        ([(2.8, 0.0), (1.2, 1.0)], 0.6),  # at the end
        ([(0.6, 1.0), (2.8, 0.0), (0.6, 1.0)], 0.3),  # two that no two seconds hold together
    ],
)
def test_worst_two_seconds_are_found_wherever_they_are(pieces: list[tuple[float, float]], worst: float) -> None:
    found = shares(bursts(pieces), OPENS, END, total_s=None, waits=())

    assert found is not None
    assert found.worst is not None
    assert found.worst.held == pytest.approx(worst, abs=0.003)
    assert found.mean.held == pytest.approx(0.3, abs=0.002)


def test_less_than_two_seconds_have_no_worst() -> None:
    found = shares(ticks(0.3, 1.5), OPENS, END, total_s=None, waits=())

    assert found is not None
    assert found.worst is None


def test_late_tick_before_the_window_takes_certainty_away() -> None:
    # The kit was held up for 0.3 s between reading the clocks and taking the time: what ran then counts in the window.
    late = Tick(OPENS, 0.31, 0.0)
    first = Tick(OPENS + 0.004, 0.004, 0.3)
    rest = ticks(0.3, 3.996, start=OPENS + 0.004)

    found = shares((late, first, *rest), OPENS, END, total_s=None, waits=())

    assert found is not None
    assert found.mean.held > 0.37
    assert found.mean.sure == pytest.approx(0.3, abs=0.003)


def test_late_ticks_may_hide_what_other_threads_did() -> None:
    # Ticks of 20 ms: the busiest thread shows 0.3, and all threads together ran for 0.5 of the time.
    found = shares(ticks(0.3, dt_s=0.02), OPENS, END, total_s=2.0, waits=())

    assert found is not None
    assert found.mean.held == pytest.approx(0.3)
    assert found.mean.wanted == pytest.approx(0.5)


def test_late_ticks_hide_nothing_where_all_threads_ran_no_longer_than_the_busiest() -> None:
    found = shares(ticks(0.3, dt_s=0.02), OPENS, END, total_s=1.2, waits=())

    assert found is not None
    assert found.mean.wanted == pytest.approx(0.3)


def test_waiting_for_a_processor_is_wanted_time() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))

    found = shares(ticks(0.3), OPENS, END, total_s=1.2, waits=waits)

    assert found is not None
    assert found.mean.wanted == pytest.approx(0.5, abs=0.001)
    assert found.worst is not None
    assert found.worst.wanted == pytest.approx(0.5, abs=0.01)
    assert found.waited_s == pytest.approx(0.8)


def test_without_waits_the_lateness_of_ticks_stands_in() -> None:
    found = shares(ticks(0.3, dt_s=0.02), OPENS, END, total_s=1.2, waits=None)

    assert found is not None
    assert found.mean.wanted == pytest.approx(0.8)  # 10 of every 20 ms were late
    assert found.waited_s is None
