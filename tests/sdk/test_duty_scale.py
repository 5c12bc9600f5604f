"""How large the governor says the next unit should be."""

from __future__ import annotations

import math

import pytest

from tests.sdk.virtual import Bench, near


def test_scale_without_a_duty_is_one():
    assert Bench(None).duty.scale() == 1.0


def test_the_first_unit_under_a_duty_is_a_probe_and_sizes_at_most_double():
    bench = Bench(0.3)
    sizes = []
    for _ in range(12):
        sizes.append(bench.duty.scale("prefill"))
        bench.unit(2.0 * sizes[-1], label="prefill")
    assert sizes[:5] == [near(0.01), near(0.02), near(0.04), near(0.08), near(0.15)]
    assert sizes[5:] == [near(0.15)] * 7


def test_scale_fits_a_measured_unit_into_the_duty_and_does_not_swing_back():
    bench = Bench(0.3, [(30, {"gpu_duty": 0.6}), (60, {"gpu_duty": 1}), (90, {})])
    bench.unit(2.0)
    assert bench.duty.scale() == near(0.15)
    bench.unit(0.3)
    assert bench.duty.scale() == near(0.15)
    for at, expected in ((30, 0.3), (60, 0.5), (90, 1.0)):
        bench.clock.now = bench.zero + at
        bench.ctl.check()
        assert bench.duty.scale() == near(expected)
        bench.unit(2.0 * expected)


def test_many_short_units_do_not_hide_a_long_one_at_once():
    bench = Bench(0.3)
    bench.unit(2.0)
    bench.duty.scale()
    bench.run(3, 0.005)
    assert bench.duty.scale() < 0.5


def test_labels_keep_prefill_and_decode_apart():
    bench = Bench(0.3)
    bench.unit(2.0, label="prefill")
    for _ in range(50):
        bench.unit(0.005, label="decode")
    assert bench.duty.scale("prefill") == near(0.15)
    assert bench.duty.scale("decode") == 1.0


def test_scale_at_duty_0_is_above_0():
    bench = Bench(0.3, [(1.0, {"gpu_duty": 0})])
    bench.unit(2.0)
    bench.ctl.check()
    assert bench.duty.scale() == near(0.025)


def test_longest_s_keeps_sizes_under_it_too():
    bench = Bench(0.3, longest_s=0.02)
    bench.unit(2.0)
    assert bench.duty.scale() == near(0.01)
    bench = Bench(0.3, [(50, {})], longest_s=0.1)
    bench.unit(2.0)
    assert bench.duty.scale() == near(0.05)
    bench.unit(0.1)
    assert bench.duty.scale() == near(0.05)
    bench.clock.now += 60
    bench.ctl.check()
    assert bench.duty.scale() == 1.0  # no duty: nobody to protect


@pytest.mark.parametrize("seconds", [-1, math.nan, "1", True])
def test_longest_s_must_be_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="longest_s: must be a finite number >= 0"):
        Bench(0.3, longest_s=seconds)
