"""The public API as a caller's type checker sees it: never run, only checked, by `hatch check types`.

A line here is a promise: the types on it are what callers build on. What must not be accepted stands behind an expected
error, so that a signature that gets looser is seen as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

from oarbank_agent_check.readings import Sample
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import ProcessTree
from oarbank_sdk.canonical import job_key, sha256
from oarbank_sdk.contracts import RunnerControl
from oarbank_sdk.contracts.catalogue import kinds, schema
from oarbank_sdk.contracts.faults import Fault
from oarbank_sdk.contracts.judge import Verdict, judge, judge_value
from oarbank_sdk.control import Control, Stopped, replace_text
from oarbank_sdk.duty import Duty
from oarbank_sdk.events import DutyReport, complete_lines, duty_report, events
from oarbank_sdk.module import Host, InvalidParams, field, serve
from oarbank_sdk.strictjson import loads
from oarbank_sdk.supervisor import Supervisor


def a_runner(workdir: Path) -> int:
    ctl = Control(workdir)
    duty = Duty(ctl, events=workdir / "events.ndjson", device="cpu")
    assert_type(ctl.gpu_duty, float | None)
    assert_type(ctl.threads, int | None)
    assert_type(ctl.seq, int)
    assert_type(ctl.paused_s, float)
    assert_type(ctl.wait(0.5), bool)
    assert_type(duty.duty, float | None)
    assert_type(duty.idle_s, float)
    assert_type(duty.scale("prefill"), float)
    ctl.phase("work")
    try:
        ctl.safe_point()
        with duty.unit() as unit:
            unit.busy(0.001)
    except Stopped:
        return assert_type(ctl.acknowledge_stop(), int)
    duty.close()
    replace_text(workdir / "result.json", "{}\n")
    return 0


def a_workload() -> int:
    duty = Duty(None)
    duty.set(0.3)
    return assert_type(Supervisor(["my-daemon"], gpu_duty=duty.set).run(), int)


def a_coordinator() -> int:
    def params_check(params: Mapping[str, Any]) -> dict[str, Any]:
        if field(params, "size", int, 1) < 1:
            raise InvalidParams("/size: must be 1 or more", "/size")
        return {"ok": True}

    def heard(host: Host) -> None:
        host.log("info", "ready")

    verbs = {"params.check": params_check}
    return assert_type(serve(verbs, module_id="org.example.toy", version="1.0.0", initialized=heard), int)


def an_integrator(data: bytes) -> None:
    verdict = judge("runner-control-1", data)
    assert_type(verdict, Verdict)
    assert_type(verdict.valid, bool)
    assert_type(verdict.faults, list[Fault])
    assert_type(judge_value("conformance-1", loads(data)), list[Fault])
    assert_type(kinds(), list[str])
    assert_type(schema("runner-control-1"), dict[str, Any])
    assert_type(job_key("org.example.toy", "toy1", {"seed": 1}), str)
    assert_type(sha256({"a": 1}), str)
    control = RunnerControl.model_validate(loads(data))
    assert_type(control.seq, int)
    lines, _rest = complete_lines(data)
    for event in events(lines):
        report = duty_report(event)
        assert_type(report, DutyReport | None)


def an_owner(pid: int) -> float | None:
    meter = CpuThreads(ProcessTree(pid))
    meter.start()
    sample = meter.sample()
    assert_type(sample, Sample)
    return sample.share


def what_is_refused(workdir: Path) -> None:
    # pyrefly: ignore[bad-argument-type]
    Duty(None).set("0.3")
    # pyrefly: ignore[unexpected-keyword]
    Control(workdir, poll_s=1)
    # pyrefly: ignore[bad-argument-type]
    judge(1, b"")
