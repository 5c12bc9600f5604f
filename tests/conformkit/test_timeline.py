"""What happened over a run, on one axis: sums hold, gaps stay gaps, and nobody's word stretches the axis."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.sources.ticks import Tick
from oarbank_conformkit.evidence import Change, DutySeen
from oarbank_conformkit.report import DutyRun
from oarbank_conformkit.timeline import MOST_BUCKETS, timeline
from tests.conformkit import reports
from tests.conformkit.seen import NUDGED, OPENS, SPEC, cpu, duty, report
from tests.conformkit.seen import ticks as seen_ticks


def test_moments_count_from_the_nudge_in_order() -> None:
    found = timeline(reports.held())

    assert found is not None
    assert [(round(moment.at_s, 3), moment.says) for moment in found.moments] == [
        (0.0, "nudge: duty 0.3"),
        (1.0, "window opens"),
        (5.0, "window closes"),
        (5.1, "stop"),
        (5.11, "acknowledged"),
        (5.12, "ended, exit 75"),
    ]


ENDS = [
    ("by itself", reports.ended(0), (1.3, "ended by itself, exit 0")),
    ("by a signal", reports.ended(-9), (1.3, "ended by itself, signal 9")),
    ("by the kit", reports.deaf(), (25.1, "still there, ended by the kit")),
]


@pytest.mark.parametrize(("why", "run", "last"), ENDS, ids=[row[0] for row in ENDS])
def test_last_moment_says_how_it_ended(why: str, run: DutyRun, last: tuple[float, str]) -> None:
    found = timeline(run)

    assert found is not None
    assert (pytest.approx(found.moments[-1].at_s), found.moments[-1].says) == last


def test_without_a_nudge_there_is_nothing_to_show() -> None:
    assert timeline(DutyRun(SPEC, DutySeen(refused="no such file"))) is None


def test_a_steady_share_is_the_same_in_every_bar_and_mean() -> None:
    found = timeline(reports.held())

    assert found is not None
    (series,) = found.series
    assert [bar.share for bar in series.bars if 1.0 <= bar.start_s < 5.0] == [pytest.approx(0.3)] * 16
    assert [share for _, share in series.means] == [pytest.approx(0.3)] * 9
    assert (series.means[0][0], series.means[-1][0]) == (pytest.approx(3.0), pytest.approx(5.0))


def test_a_burst_stands_where_it_was() -> None:
    quiet = tuple(Tick(OPENS + (i + 1) * 0.005, 0.005, 0.005 if 200 <= i < 300 else 0.0) for i in range(800))
    found = timeline(reports.held(cpu=cpu(ticks=quiet)))

    assert found is not None
    busy = [(bar.start_s, bar.end_s) for bar in found.series[0].bars if bar.share > 0.5]
    assert busy == [(2.0, 2.25), (2.25, 2.5)]
    assert max(share for _, share in found.series[0].means) == pytest.approx(0.25)


def test_a_counter_that_could_not_be_read_is_a_gap_and_no_zero() -> None:
    found = timeline(reports.both_devices())

    assert found is not None
    gpu, processor = found.series
    assert (gpu.device, processor.device) == ("gpu", "cpu")
    assert {round(bar.share, 3) for bar in gpu.bars} == {0.8}
    assert not [bar for bar in gpu.bars if 3.0 <= bar.start_s < 3.99]
    assert all(at_s <= 3.01 for at_s, _ in gpu.means)


def test_reports_that_are_not_judged_are_told_apart() -> None:
    found = timeline(reports.held(reports=(report(1.0, ends_s=0.4), report())))

    assert found is not None
    assert [one.judged for one in found.told] == [False, True]


def test_a_report_from_the_far_future_does_not_stretch_the_axis() -> None:
    found = timeline(reports.held(reports=(report(ends_s=1e300), report(window_s=1e300))))

    assert found is not None
    assert found.end_s < 10.0


def test_evidence_without_the_moment_of_the_nudge_counts_from_the_window() -> None:
    found = timeline(DutyRun(SPEC, duty()))

    assert found is not None
    assert found.window == (pytest.approx(1.0), pytest.approx(5.0))


@given(st.floats(2.0, 5000.0), st.floats(0.0, 1.0))
def test_a_long_run_has_a_bounded_number_of_bars_and_keeps_its_mean(window_s: float, share: float) -> None:
    seen = cpu(ticks=(Tick(OPENS + window_s, window_s, share * window_s),), end=OPENS + window_s)
    found = timeline(DutyRun(SPEC, replace(duty(), nudged=OPENS - 1.0, cpu=seen)))

    assert found is not None
    bars = found.series[0].bars
    assert len(bars) <= MOST_BUCKETS + 1
    assert all(bar.share == pytest.approx(share, abs=1e-6) for bar in bars)


def test_every_duty_is_asked_until_the_next_and_the_last_measure_is_shown() -> None:
    later = cpu(ticks=(*cpu().ticks, *seen_ticks(0.05, 3.0, start=OPENS + 4.0)))
    changes = (
        Change(0.0, NUDGED + 5, NUDGED + 6, NUDGED + 6, nudged=reports.NUDGED_AT + 6, cpu=later),
        Change(0.3, NUDGED + 8, NUDGED + 8, NUDGED + 8, nudged=reports.NUDGED_AT + 8),
    )
    run = reports.held(changes=changes)
    found = timeline(replace(run, seen=replace(run.seen, stop=None)))

    assert found is not None
    assert [(one.start_s, one.end_s, one.share) for one in found.asked] == [
        (0.0, 6.0, 0.3),
        (6.0, 8.0, 0.0),
        (8.0, pytest.approx(8.25), 0.3),
    ]
    assert [moment.says for moment in found.moments[-2:]] == ["nudge: duty 0", "nudge: duty 0.3"]
    assert found.series[0].bars[-1].share == pytest.approx(0.05)
    assert found.series[0].means[-1][0] == pytest.approx(5.0)  # a mean over two duties would say nothing
