"""The governor on a virtual clock: when units start, and what ends an idle."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk.control import Stopped
from oarbank_sdk.duty import CREDIT_S, Duty
from tests.sdk.virtual import Bench, VirtualClock, near

# ---- when a unit may start --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duty", "unit_s", "host_s", "gap_s"),
    [
        pytest.param(0.25, 0.05, 0.0, 0.15, id="the idle is b(1-d)/d"),
        pytest.param(0.3, 0.3, 0.0, 0.7, id="a unit of d seconds makes a cycle of one second"),
        pytest.param(0.25, 0.05, 0.1, 0.15, id="host work overlaps the idle"),
        pytest.param(0.25, 0.05, 0.4, 0.4, id="host work longer than the idle leaves none"),
        pytest.param(1, 0.05, 0.0, 0.0, id="duty 1 idles never"),
        pytest.param(None, 0.05, 0.0, 0.0, id="no duty idles never"),
    ],
)
@pytest.mark.parametrize("tick_s", [0.0, 1e-9])
def test_gap_between_units(duty, unit_s, host_s, gap_s, tick_s):
    bench = Bench(duty, tick_s=tick_s)
    bench.run(20, unit_s, host_s)
    assert bench.gaps()[1:] == [near(gap_s)] * 18  # the first may spend what the credit holds of nothing: none
    if duty in (1, None):
        assert bench.duty.idle_s == 0


def test_oversleep_is_repaid_so_that_the_share_stays_whole():
    bench = Bench(0.5)
    bench.ctl.late_s = lambda: 0.004
    bench.run(200, 0.010)
    busy, wall = 200 * 0.010, bench.units[-1][1] - bench.units[0][0]
    assert busy / wall == pytest.approx(0.5, rel=0.005)


def test_credit_is_never_more_than_20_ms():
    bench = Bench(0.5)
    bench.run(5, 0.1)
    bench.clock.now += 0.9  # late, but no stall
    bench.run(3, 0.1)
    assert bench.gaps()[5:] == [near(0.1 - CREDIT_S), near(0.1)]


def test_a_stall_earns_no_credit():
    bench = Bench(0.5)
    bench.run(2, 0.1)
    bench.clock.now += 3600  # a machine that slept
    bench.run(2, 0.1)
    assert bench.gaps()[2] == near(0.1)


def test_a_cold_unit_owes_its_own_idle_and_later_ones_do_not_grow():
    bench = Bench(0.25)
    bench.unit(3.0)
    bench.run(3, 0.01)
    assert bench.gaps() == [near(9.0), near(0.03), near(0.03)]


def test_a_unit_that_raises_is_owed_and_its_exception_passes():
    bench = Bench(0.5)
    with pytest.raises(KeyError), bench.duty.unit():
        bench.clock.now += 0.2
        raise KeyError("body")
    ended = bench.clock.now - bench.zero
    assert bench.unit(0.1) == near(ended + 0.2)


def test_a_nested_unit_belongs_to_the_outer_one():
    bench = Bench(0.5)
    with bench.duty.unit():
        bench.clock.now += 0.1
        with bench.duty.unit("inner"):
            bench.clock.now += 0.1
        bench.clock.now += 0.1
    assert bench.duty.units == 1
    assert bench.duty.busy_s == near(0.3)
    assert bench.unit(0.1) == near(0.6)


@given(
    duty=st.floats(0.05, 0.95),
    work=st.lists(st.tuples(st.floats(0.0005, 0.3), st.floats(0, 0.05)), min_size=2, max_size=60),
    late=st.floats(0, 0.01),
)
def test_no_window_holds_more_than_the_promise(duty, work, late):
    bench = Bench(duty)
    bench.ctl.late_s = lambda: late
    for unit_s, host_s in work:
        bench.unit(unit_s, host_s)
    longest = max(unit_s for unit_s, _ in work)
    for window_s in (2.0, 6.0):
        assert bench.busiest(window_s) <= duty + longest * (1 - duty) / window_s + CREDIT_S / window_s + 1e-6


@given(st.floats(0.1, 0.9), st.floats(0.001, 0.02), st.floats(0, 0.001), st.floats(0, 0.002))
def test_held_is_what_is_possible(duty, unit_s, host_s, late):
    bench = Bench(duty)
    bench.ctl.late_s = lambda: late
    bench.run(400, unit_s, host_s)
    wall = bench.units[-1][0] - bench.units[0][0]
    entitled = min(duty, unit_s / (unit_s + host_s))
    assert 399 * unit_s / wall >= 0.985 * min(entitled, unit_s / (unit_s + max(host_s, late)))


# ---- what ends an idle ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("duty", "unit_s", "at_s", "document", "starts_s"),
    [
        pytest.param(0.01, 0.3, 1.3, {"gpu_duty": 1}, 1.3, id="duty 1 starts the next unit at once"),
        pytest.param(0.01, 0.3, 0.4, {"gpu_duty": 0.5}, 0.6, id="0.5 counts from the unit's end"),
        pytest.param(0.01, 0.3, 5.3, {"gpu_duty": 0.5}, 5.3, id="at once where that has passed"),
        pytest.param(0.5, 0.3, 0.4, {"gpu_duty": 0.1}, 3.0, id="a lower duty makes the idle grow"),
        pytest.param(0.01, 0.3, 2.3, {}, 2.3, id="a document without a duty lifts it"),
        pytest.param(0.0, 0.3, 8.0, {"gpu_duty": 0.2}, 8.0, id="duty 0 waits for anything larger"),
    ],
)
def test_a_new_duty_resizes_the_wait(duty, unit_s, at_s, document, starts_s):
    script = [(0.01, {"gpu_duty": duty}), (at_s, document)]
    bench = Bench(None, script)
    bench.unit(unit_s)
    assert bench.unit(unit_s) == near(starts_s)


def test_stop_in_the_middle_of_an_idle_raises_and_starts_no_unit():
    bench = Bench(0.01, [(1.0, {"stop": True})])
    bench.unit(0.3)
    with pytest.raises(Stopped):
        bench.unit(0.3)
    assert bench.clock.now - bench.zero == near(1.0)
    assert bench.duty.units == 1


def test_stop_is_raised_where_no_idle_is_owed():
    bench = Bench(None, [(0.0, {"stop": True})])
    with pytest.raises(Stopped):
        bench.unit(0.1)
    assert bench.duty.units == 0


def test_pause_inside_an_idle_is_held_before_the_unit_and_is_no_idle():
    bench = Bench(0.5, [(0.15, {"pause": True, "gpu_duty": 0.5}), (5.0, {"gpu_duty": 0.5})])
    bench.unit(0.1)
    assert bench.unit(0.1) == near(5.0)
    assert bench.ctl.paused_s == near(4.85)
    assert bench.duty.idle_s == near(0.05)


def test_nothing_is_repaid_across_a_pause():
    bench = Bench(0.5, [(1.0, {"pause": True, "gpu_duty": 0.5}), (1.3, {"gpu_duty": 0.5})])
    bench.run(9, 0.1)
    after = [start for start, _ in bench.units if start >= 1.3]
    assert after[1] - after[0] == near(0.2)


def test_the_smallest_duty_waits_in_slices_and_a_stop_ends_it():
    bench = Bench(1e-320, [(30.0, {"stop": True})])
    bench.unit(0.1)
    with pytest.raises(Stopped):
        bench.unit(0.1)
    assert max(bench.ctl.waits) <= 2.0


def test_an_older_control_without_a_timed_wait_is_polled(monkeypatch):
    clock = VirtualClock()

    class Older:
        """What an earlier control.py offers."""

        gpu_duty = 0.5
        paused_s = 0.0

        def safe_point(self) -> None:
            if clock.now > 9.0:
                raise Stopped("stop")

    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.now += seconds

    monkeypatch.setattr("oarbank_sdk.duty.time.sleep", sleep)
    duty = Duty(Older(), clock=clock)
    with duty.unit():
        clock.now += 1.5
    with pytest.raises(Stopped), duty.unit():
        pass
    assert max(slept) == near(0.05)


# ---- set, close, wrong use --------------------------------------------------------------------------


@pytest.mark.parametrize("value", [True, "0.3", b"1", math.nan, math.inf, [], object(), 10**400])
def test_set_refuses_what_is_no_finite_number(value):
    duty = Duty(None)
    with pytest.raises(ValueError, match="duty: must be a finite number"):
        duty.set(value)
    assert duty.duty is None


@pytest.mark.parametrize(("value", "in_force"), [(0.5, 0.5), (1, 1.0), (7, 1.0), (-2, 0.0), (-0.0, 0.0), (None, None)])
def test_set_clamps_numbers(value, in_force):
    duty = Duty(None)
    duty.set(value)
    assert duty.duty == in_force
    assert str(duty.duty) != "-0.0"


def test_set_beside_a_control_document_is_wrong_use():
    bench = Bench(0.5)
    with pytest.raises(RuntimeError, match="control document"):
        bench.duty.set(0.1)


def test_a_unit_after_close_is_wrong_use_and_a_second_close_does_nothing():
    bench = Bench(0.5)
    bench.unit(0.1)
    bench.duty.close()
    bench.duty.close()
    with pytest.raises(RuntimeError, match="closed"):
        bench.duty.unit()


def test_with_closes():
    bench = Bench(0.5)
    with bench.duty as duty:
        bench.unit(0.1)
    with pytest.raises(RuntimeError):
        duty.unit()


def test_sync_is_called_in_the_time_of_every_unit_also_when_the_body_raises():
    def sync() -> None:
        bench.clock.now += 0.05

    bench = Bench(0.5, sync=sync)
    bench.unit(0.1)
    with pytest.raises(KeyError), bench.duty.unit():
        raise KeyError
    assert bench.duty.busy_s == near(0.2)


def test_device_time_is_owed_in_place_of_wall_time():
    bench = Bench(0.5)
    with bench.duty.unit() as unit:
        bench.clock.now += 0.5  # four fifths of it waiting for somebody else's frames
        unit.busy(0.06)
        unit.busy(0.04)
    assert bench.duty.busy_s == near(0.1)
    assert bench.unit(0.1) == near(0.5)  # 0.1 at 0.5 is a cycle of 0.2, long past
    assert bench.unit(0.1) == near(0.7 - CREDIT_S)


@pytest.mark.parametrize("seconds", [-1, math.nan, True, "1"])
def test_device_time_must_be_a_number(seconds):
    bench = Bench(0.5)
    with pytest.raises(ValueError, match=r"unit\.busy"), bench.duty.unit() as unit:
        unit.busy(seconds)


# ---- what must never leave a unit ungoverned -----------------------------------------------------------


def test_a_report_that_fails_leaves_the_next_unit_governed(tmp_path, monkeypatch):
    bench = Bench(0.1, events=tmp_path / "events.ndjson")

    def broken(*_: object) -> None:
        raise KeyboardInterrupt  # Ctrl-C in a slow write, caught by the caller

    monkeypatch.setattr(bench.duty, "_write", broken)
    with pytest.raises(KeyboardInterrupt):
        bench.unit(5.0)
    monkeypatch.undo()
    ended = bench.clock.now - bench.zero
    assert bench.unit(0.1) >= ended + 44.9


def test_a_standard_error_that_is_gone_never_ends_the_work(tmp_path, monkeypatch):
    class Gone:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stderr", Gone())
    bench = Bench(0.5, events=tmp_path / "gone" / "events.ndjson")
    bench.run(40, 0.2)
    assert len(bench.units) == 40


def test_device_time_after_the_block_would_charge_another_unit_and_is_refused():
    bench = Bench(0.5)
    with bench.duty.unit() as unit:
        bench.clock.now += 0.1
    with pytest.raises(RuntimeError, match=r"unit\.busy: must be called inside"):
        unit.busy(0.05)


def test_an_idle_that_ends_in_a_stop_is_counted():
    bench = Bench(0.01, [(1.5, {"stop": True})])
    bench.unit(0.5)
    with pytest.raises(Stopped):
        bench.unit(0.5)
    assert bench.duty.idle_s == near(1.0)


@pytest.mark.parametrize("ctl", [0.3, "control.json", {"gpu_duty": 0.3}])
def test_a_governor_takes_a_control_object_and_nothing_else(ctl):
    with pytest.raises(TypeError, match="ctl: must be a Control, or None"):
        Duty(ctl)
