"""What the governor reports of itself: intervals on whole cycles, one duty each, whole lines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk.control import Stopped
from oarbank_sdk.duty import CREDIT_S
from tests.sdk.virtual import Bench, near


def reports(path: Path) -> list[dict]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] == "metric"]


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events.ndjson"


def test_reports_hold_whole_cycles(events):
    bench = Bench(0.3, events=events)
    bench.run(30, 0.3)
    found = reports(events)
    assert len(found) >= 12
    assert all(report["value"] <= 0.31 for report in found)
    assert all(1.9 < report["data"]["window_s"] <= 4.1 for report in found)


@given(st.floats(0.05, 0.9), st.floats(0.001, 0.5), st.floats(0, 0.02))
def test_a_report_never_reads_above_the_duty_for_units_that_fit(tmp_path_factory, duty, unit_s, late):
    events = tmp_path_factory.mktemp("reports") / "events.ndjson"
    bench = Bench(duty, events=events)
    bench.ctl.late_s = lambda: late
    bench.run(math.ceil(9.0 * duty / min(unit_s, duty)) + 2, min(unit_s, duty))
    found = reports(events)
    assert found
    assert all(report["value"] <= duty + 0.5 * CREDIT_S + 1e-3 for report in found)


def test_a_report_never_spans_two_duties(events):
    bench = Bench(0.2, [(3.1, {"gpu_duty": 0.6}), (7.7, {}), (9.9, {"gpu_duty": 0.4})], events=events)
    bench.run(60, 0.1)
    edges, end = {0.2: 3.1, 0.6: 7.7, None: 9.9}, 0.0
    for report in reports(events):
        end += report["data"]["window_s"]
        assert end <= edges.get(report["data"]["duty"], math.inf) + 0.1 + 1e-6  # known at the unit's end


def test_reports_come_on_time_at_duty_0(events):
    bench = Bench(0.0, [(7.0, {"stop": True})], events=events)
    with pytest.raises(Stopped):
        bench.unit(0.1)
    found = reports(events)
    assert [(report["value"], report["data"]["duty"]) for report in found] == [(0.0, 0.0)] * 3
    assert [report["data"]["window_s"] for report in found] == [near(2.0)] * 3


def test_a_long_unit_makes_its_report_late_and_true(events):
    bench = Bench(0.3, events=events)
    bench.unit(5.0)
    (report,) = reports(events)
    assert report["data"]["window_s"] >= 5.0
    assert report["value"] > 0.95
    assert report["data"]["longest_unit_s"] == near(5.0)


def test_close_writes_the_last_part_unless_it_says_nothing(events):
    bench = Bench(None, events=events, device="cpu")
    bench.unit(1.0)
    bench.duty.close()
    (report,) = reports(events)
    assert report["data"] | {"busy_s": 0} == {
        "duty": None, "device": "cpu", "window_s": near(1.0), "idle_s": 0.0, "units": 1, "busy_s": 0,
        "longest_unit_s": near(1.0), "busy_source": "wall",
    }  # fmt: skip
    short = Bench(None, events=events.with_name("short"))
    short.unit(0.2)
    short.duty.close()
    assert not events.with_name("short").exists()


def test_a_report_says_when_device_time_was_charged(events):
    bench = Bench(0.5, events=events)
    with bench.duty.unit() as unit:
        bench.clock.now += 4.5
        unit.busy(0.5)
    (report,) = reports(events)
    assert report["data"]["busy_source"] == "device"
    assert report["value"] == near(round(0.5 / 4.5, 6))


def test_a_path_that_cannot_be_written_is_said_once_and_work_goes_on(tmp_path, capfd):
    bench = Bench(0.5, events=tmp_path / "gone" / "events.ndjson")
    bench.run(40, 0.2)
    assert len(bench.units) == 40
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "events.ndjson: must take gpu_duty reports; found:" in err


def test_a_report_is_written_again_when_the_folder_comes_back(tmp_path, capfd):
    folder = tmp_path / "gone"
    bench = Bench(0.5, events=folder / "events.ndjson")
    bench.run(10, 0.2)
    folder.mkdir()
    bench.run(10, 0.2)
    assert reports(folder / "events.ndjson")


def test_a_broken_duty_is_told_in_the_events(events):
    bench = Bench(0.5, [(0.5, {"gpu_duty": 0.0}), (3.0, {"stop": True})], events=events)
    bench.ctl.gpu_duty_fault = "gpu_duty: must be a number from 0 to 1; found 'x'."
    with pytest.raises(Stopped):
        bench.run(9, 0.2)
    warnings = [event for event in map(json.loads, events.read_text().splitlines()) if event["kind"] == "log"]
    assert [(event["level"], event["msg"]) for event in warnings] == [("warn", bench.ctl.gpu_duty_fault)]


def test_half_a_cycle_is_not_reported_as_a_share(events):
    bench = Bench(0.3, [(0.31, {"gpu_duty": 0.6})], events=events)
    bench.unit(0.3)  # the change comes right after it
    bench.unit(0.3)
    bench.duty.close()
    assert not events.exists()


def test_close_inside_a_unit_reports_all_of_it(events):
    bench = Bench(None, events=events)
    with bench.duty.unit():
        bench.clock.now += 0.5
        bench.duty.close()
        bench.clock.now += 0.4
    (report,) = reports(events)
    assert report["data"]["busy_s"] == near(0.9)


def test_a_relative_path_stays_where_it_was_when_the_runner_changes_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench = Bench(None, events="events.ndjson")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    bench.unit(5.0)
    assert reports(tmp_path / "events.ndjson")
