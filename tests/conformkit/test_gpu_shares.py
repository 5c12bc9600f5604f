"""From readings of GPU counters to shares: late, absent, coarse, and booked when a buffer ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_conformkit.evidence import GpuTick, Wait
from oarbank_conformkit.shares import Shares, gpu_shares
from tests.conformkit.seen import OPENS, gpu_ticks

END = OPENS + 4.0


def found(ticks: tuple[GpuTick, ...], waits: tuple[Wait, ...] | None = ()) -> Shares:
    shares = gpu_shares(ticks, OPENS, END, waits=waits)
    assert shares is not None
    assert shares.worst is not None
    return shares


def in_pieces(pieces: list[tuple[float, float]]) -> tuple[GpuTick, ...]:
    ticks: tuple[GpuTick, ...] = ()
    for seconds, share in pieces:
        ticks += gpu_ticks(share, seconds, start=ticks[-1].t if ticks else OPENS)
    return ticks


def test_three_bounds_are_one_on_a_free_machine() -> None:
    shares = found(gpu_ticks(0.3))

    for bounds in (shares.mean, shares.worst):
        assert bounds is not None
        assert (bounds.held, bounds.sure, bounds.wanted) == pytest.approx((0.3, 0.3, 0.3))
    assert shares.covered_s == pytest.approx(4.0)


def test_no_reading_in_the_window_is_no_share() -> None:
    assert gpu_shares(gpu_ticks(0.3), END + 1, END + 5, waits=()) is None


@pytest.mark.parametrize(
    ("pieces", "worst"),
    [
        ([(1.2, 1.0), (2.8, 0.0)], 0.6),
        ([(1.3, 0.0), (1.2, 1.0), (1.5, 0.0)], 0.6),
        ([(2.8, 0.0), (1.2, 1.0)], 0.6),
        ([(0.6, 1.0), (2.8, 0.0), (0.6, 1.0)], 0.3),
        ([(2.0, 2.0), (2.0, 0.0)], 2.0),  # two engines
    ],
)
def test_worst_two_seconds_are_found_wherever_they_are(pieces: list[tuple[float, float]], worst: float) -> None:
    shares = found(in_pieces(pieces))

    assert shares.worst is not None
    assert shares.worst.held == pytest.approx(worst, abs=0.03)


def test_buffer_booked_at_its_end_counts_when_it_ran() -> None:
    # Units of 0.45 s at duty 0.45: a cycle of a second, booked by the driver in the one tick where the unit ends.
    ticks = gpu_ticks(0.0, 6.0, start=OPENS - 2.0)
    late = tuple(replace(tick, gain_s=0.45) if i % 20 == 9 else tick for i, tick in enumerate(ticks))

    shares = found(late)

    assert shares.mean.held == pytest.approx(0.45, abs=0.001)
    assert shares.worst is not None
    assert shares.worst.held == pytest.approx(0.45, abs=0.02)


def test_buffer_that_ran_before_the_window_is_not_in_it() -> None:
    before = gpu_ticks(0.0, 2.0, start=OPENS - 2.0)
    first, *rest = gpu_ticks(0.0)

    shares = found((*before, replace(first, gain_s=0.5), *rest))

    assert shares.mean.held == pytest.approx(0.05 / 4.0)


@given(st.lists(st.floats(0.0, 0.4), min_size=80, max_size=80))
def test_moving_time_to_where_it_ran_neither_makes_nor_loses_any(gains: list[float]) -> None:
    ticks = gpu_ticks(0.0)

    shares = found(tuple(replace(tick, gain_s=gain) for tick, gain in zip(ticks, gains, strict=True)))

    assert shares.mean.held == pytest.approx(sum(gains) / 4.0)


def test_reading_that_failed_may_hide_all_of_its_time_and_accuses_nobody() -> None:
    shares = found(in_pieces([(2.0, 0.3), (1.8, 0.3)]) + gpu_ticks(None, 0.2, start=END - 0.2))

    assert shares.covered_s == pytest.approx(3.8)
    assert shares.mean.sure <= shares.mean.held == pytest.approx(0.3 * 3.8 / 4.0)
    assert shares.mean.wanted == pytest.approx(0.3 * 3.8 / 4.0 + 0.2 / 4.0)


def test_coarse_source_accuses_by_its_low_and_clears_by_its_high() -> None:
    ticks = tuple(replace(tick, low_s=0.2 * tick.dt_s, high_s=0.5 * tick.dt_s) for tick in gpu_ticks(0.3))

    shares = found(ticks)

    assert (shares.mean.sure, shares.mean.held, shares.mean.wanted) == pytest.approx((0.2, 0.3, 0.5))


def test_late_reading_at_the_edge_takes_certainty_away() -> None:
    late = GpuTick(OPENS, 0.4, 0.0)

    shares = found((late, *gpu_ticks(0.3)))

    assert shares.mean.held == pytest.approx(0.3)
    assert shares.mean.sure == pytest.approx(0.3 - 0.3 / 4.0)


def test_late_reading_inside_hides_nothing_for_the_counter_went_on() -> None:
    shares = found((*gpu_ticks(0.3, 2.0), GpuTick(OPENS + 2.5, 0.5, 0.15), *gpu_ticks(0.3, 1.5, start=OPENS + 2.5)))

    assert shares.mean.sure == pytest.approx(shares.mean.wanted) == pytest.approx(0.3)


def test_waiting_for_a_processor_is_wanted_time() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))

    shares = found(gpu_ticks(0.3), waits)

    assert shares.mean.wanted == pytest.approx(0.5, abs=0.001)
    assert shares.waited_s == pytest.approx(0.8)
