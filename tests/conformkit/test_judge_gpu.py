"""A duty spec judged where a GPU source reads: whose word counts, and who is caught by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarbank_conformkit.evidence import DutySeen, Wait
from oarbank_conformkit.judge.duty import measured, used_reports
from tests.conformkit.seen import OPENS, SPEC, cpu, duty, gpu, gpu_ticks, judged, report, statuses

REPORTS = {
    "gpu": (report(device="gpu"),),
    "cpu": (report(),),
    "both": (report(), report(device="gpu", ends_s=4.5)),
    "none": (),
}


def seen(says: str, on_cpu: float, on_gpu: float, **other: Any) -> DutySeen:
    """A runner by what its reports name, and what it held of each device."""
    return duty(**{"reports": REPORTS[says], "cpu": cpu(on_cpu), "gpu": gpu(on_gpu), "gpu_unknown": None} | other)


VERDICTS = [
    # what, reports say, of the CPU, of the GPU, verdict, named in the sentence
    ("governed GPU units, host work between them", "gpu", 0.9, 0.3, "pass", "0.300 of the GPU (fake-gpu)"),
    ("GPU units that end too early", "gpu", 0.1, 1.0, "fail", "1.000 of the GPU"),
    ("exactly the limit", "gpu", 0.1, 0.4, "pass", "0.400"),
    ("above it", "gpu", 0.1, 0.41, "fail", "0.410"),
    ("units on the CPU, a child on the GPU", "cpu", 0.3, 0.9, "fail", "0.900 of the GPU"),
    ("units on the CPU alone", "cpu", 0.3, 0.0, "pass", "0.300 over"),
    ("too much on the CPU", "cpu", 0.9, 0.0, "fail", "0.900 over"),
    ("units on both, too much on the CPU", "both", 0.9, 0.3, "fail", "0.900 over"),
    ("units on both, too much on the GPU", "both", 0.3, 0.9, "fail", "0.900 of the GPU"),
    ("units on both", "both", 0.3, 0.3, "pass", "0.300 of the GPU"),
    ("nobody reports, the GPU is taken", "none", 0.1, 0.9, "fail", "0.900 of the GPU"),
    ("nobody reports, nothing is taken", "none", 0.1, 0.1, "unknown", "No report says"),
]


@pytest.mark.parametrize(("what", "says", "on_cpu", "on_gpu", "verdict", "named"), VERDICTS, ids=lambda v: str(v))
def test_the_worst_device_speaks(what: str, says: str, on_cpu: float, on_gpu: float, verdict: str, named: str) -> None:
    found = judged(seen(says, on_cpu, on_gpu))

    assert found["duty.measured_share"].status == verdict
    assert named in found["duty.measured_share"].detail


def test_evidence_names_the_device_that_decided() -> None:
    evidence = judged(seen("cpu", 0.3, 0.9))["duty.measured_share"].evidence

    assert evidence is not None
    assert (evidence["device"], evidence["source"], evidence["held"]) == ("gpu", "fake-gpu", 0.9)


@pytest.mark.parametrize(("share", "expected"), [(0.44, "pass"), (0.47, "fail")])
def test_burst_on_the_gpu_is_held_to_the_duty_and_0_15(share: float, expected: str) -> None:
    ticks = (*gpu_ticks(0.1, 2.0), *gpu_ticks(share, 2.0, start=OPENS + 2.0))

    found = statuses(seen("gpu", 0.0, 0.0, gpu=gpu(ticks=ticks)))

    assert found["duty.burst"] == expected
    assert found["duty.measured_share"] == "pass"


def test_source_that_sees_nothing_of_what_was_reported_clears_nobody() -> None:
    found = judged(seen("gpu", 0.1, 0.0))

    for rule in ("duty.measured_share", "duty.burst"):
        assert found[rule].status == "unknown"
        assert "another device" in found[rule].detail
    assert statuses(seen("gpu", 0.1, 0.0, reports=(report(0.0, device="gpu"),)))["duty.measured_share"] == "pass"


def test_unreadable_process_is_unknown_with_the_reason_whatever_the_reports_say() -> None:
    hidden = gpu(ticks=gpu_ticks(None), unknown="pid 7: hidden from this user")

    for says in ("gpu", "cpu"):
        found = judged(seen(says, 0.3, 0.0, gpu=hidden))
        assert found["duty.measured_share"].status == "unknown"
        assert "pid 7: hidden" in found["duty.measured_share"].detail


def test_one_unreadable_moment_clears_only_what_it_could_not_have_hidden() -> None:
    moment = gpu_ticks(None, 0.3, start=OPENS + 3.7)

    def verdict(share: float) -> str:
        ticks = (*gpu_ticks(share, 3.7), *moment)
        return statuses(seen("gpu", 0.0, 0.0, gpu=gpu(ticks=ticks, unknown="pid 7: new")))["duty.measured_share"]

    assert verdict(0.3) == "pass"
    assert verdict(0.39) == "unknown"
    assert verdict(0.6) == "fail"


def test_runner_short_of_a_processor_is_not_cleared_by_the_gpu() -> None:
    waits = tuple(Wait(OPENS + (i + 1) * 0.1, 0.1, 0.02) for i in range(40))

    found = judged(seen("gpu", 0.1, 0.25, cpu=cpu(0.1, waits=waits)))["duty.measured_share"]

    assert found.status == "unknown"
    assert "waited 0.80 s" in found.detail


def test_without_a_gpu_source_the_cpu_decides_for_those_who_say_cpu_and_nobody_else() -> None:
    assert statuses(duty(gpu=None))["duty.measured_share"] == "pass"
    assert statuses(duty(gpu=None, reports=REPORTS["gpu"]))["duty.measured_share"] == "unknown"
    assert statuses(duty(gpu=None, reports=REPORTS["both"]))["duty.measured_share"] == "unknown"


def test_processor_time_that_could_not_be_read_is_no_matter_for_the_gpu() -> None:
    broken = replace(cpu(), unknown="pid 7: hidden", waits=None)

    assert statuses(seen("gpu", 0.0, 0.3, cpu=broken))["duty.measured_share"] == "pass"


def test_reported_device_comes_first() -> None:
    def order(says: str) -> list[str]:
        one = seen(says, 0.3, 0.3)
        return [each.device for each in measured(one, used_reports(one))]

    assert (order("gpu"), order("cpu"), order("both")) == (["gpu"], ["cpu", "gpu"], ["gpu", "cpu"])
    assert judged(seen("gpu", 0.3, 0.3), SPEC)["duty.burst"].status == "pass"
