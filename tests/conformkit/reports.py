"""Reports of every kind, made by hand: what the renderers must be able to show."""

from __future__ import annotations

from dataclasses import replace

from oarbank_agent_check.jobs.host import Host
from oarbank_conformkit.checks import Check, Status, check
from oarbank_conformkit.evidence import DutySeen, GpuSeen
from oarbank_conformkit.report import DutyRun, Report
from tests.conformkit.seen import OPENS, SPEC, STOPPED, cpu, duty, gpu, gpu_ticks, judged, report, ticks

HOST = Host("linux-amd64", "/usr/bin/python3", "3.11.7", 2)
NUDGED_AT = OPENS - 1.0

HOSTILE = (
    '<script>alert("x")</script> & ]]> --> \' \x1b[31m red \x00 \x07 \x85 \ud800 \u202e turned \ufffe\r' + "long" * 200
)
MARKUP = "<script>alert("
"""The part of it that no renderer may let through as it is."""


def one(status: Status, rule: str = "duty.reports", **other: object) -> Check:
    return replace(check("runner", rule, f"a {status} check", status, f"why it is {status}"), **other)


def of(*checks: Check, duty_runs: tuple[DutyRun, ...] = ()) -> Report:
    return Report("org.example.standin", "1.2.3", "modules/standin", "0.1.0", HOST, 1000.0, 4.25, checks, duty_runs)


def held(**other: object) -> DutyRun:
    """A run that did everything right and was stopped a moment after its window closed."""
    return DutyRun(SPEC, duty(nudged=NUDGED_AT, stop=replace(STOPPED, nudged=NUDGED_AT + 5.1), **other))


def both_devices() -> DutyRun:
    """Units on the GPU and on the CPU, and some counters of the GPU that could not be read."""
    read = (*gpu_ticks(0.8, 2.0), *gpu_ticks(None, 1.0, start=OPENS + 2.0), *gpu_ticks(0.8, 1.0, start=OPENS + 3.0))
    seen = GpuSeen(OPENS, OPENS + 4.0, read, "pid 7: not permitted", "fake-gpu")
    return held(reports=(report(0.8, device="gpu"), report(0.3, ends_s=4.5), report(1.0, ends_s=0.4)), gpu=seen)


def hostile() -> Report:
    """Names, details and evidence that others wrote, at their worst."""
    spec = replace(SPEC, name=HOSTILE)
    checks = [
        check("runner", "duty.runs", HOSTILE, status, HOSTILE, {HOSTILE: HOSTILE, "n": [{"a": HOSTILE}, *range(100)]})
        for status in ("pass", "fail", "unknown", "skip", "warn")
    ]
    found = of(*checks, duty_runs=(DutyRun(spec, held().seen),))
    return replace(found, module_id=HOSTILE, module_version=HOSTILE, directory=HOSTILE, kit=HOSTILE)


def every_kind() -> dict[str, Report]:
    """Reports by what they show."""
    wrong = held(reports=(report(0.7),), cpu=cpu(0.8))
    strange = held(reports=(report(0.3, ends_s=1e300), report(0.3, window_s=None), report(0.3, window_s=1e300)))
    return {
        "all passed": of(*judged(held().seen).values(), duty_runs=(held(),)),
        "failed": of(*judged(wrong.seen).values(), duty_runs=(wrong,)),
        "could not be told": of(one("unknown"), duty_runs=(held(cpu=cpu(0.3, unknown="not permitted")),)),
        "no duty spec": of(one("pass"), one("skip"), one("warn", "duty.units")),
        "nothing at all": of(),
        "manifest broken": replace(of(one("fail", "manifest.valid")), module_id=None, module_version=None),
        "GPU and CPU": of(*judged(both_devices().seen).values(), duty_runs=(both_devices(),)),
        "GPU above all of it": of(one("pass"), duty_runs=(held(gpu=gpu(7.0)),)),
        "ended early": of(one("fail", "duty.runs"), duty_runs=(ended(-9), ended(0))),
        "never started": of(one("fail", "duty.runs"), duty_runs=(DutyRun(SPEC, DutySeen(refused="no such file")),)),
        "deaf to stop": of(one("fail", "duty.stop"), duty_runs=(deaf(),)),
        "strange reports": of(one("pass"), duty_runs=(strange,)),
        "a thousand reports": of(one("pass"), duty_runs=(held(reports=(report(),) * 1000),)),
        "ten minutes": of(one("pass"), duty_runs=(held(cpu=cpu(0.3, 600.0, ticks=ticks(0.3, 600.0, dt_s=0.1))),)),
        "hostile": hostile(),
    }


def ended(code: int) -> DutyRun:
    return DutyRun(SPEC, DutySeen(nudged=NUDGED_AT, phase_s=0.1, ended_s=1.3, code=code))


def deaf() -> DutyRun:
    stop = replace(STOPPED, outcome="ignored", nudged=NUDGED_AT + 5.1, ack=None, ack_s=None, exit_s=None, alive_s=20.0)
    return DutyRun(SPEC, duty(nudged=NUDGED_AT, stop=stop))
