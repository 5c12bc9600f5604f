"""The rules beside the schemas at their borders; the examples show each rule broken once."""

from __future__ import annotations

from typing import Any

import pytest

from oarbank_sdk.contracts.judge import judge_value
from oarbank_sdk.contracts.rules import warnings

SAMPLE = {"t": 1.0, "window_s": 2, "pids": [7], "share": 0.3, "busy_s": 0.6, "source": "nvml", "unknown": []}
WHY = [{"pid": 7, "reason": "not permitted"}]
NO_SHARE = {"share": None, "unknown": WHY}
NO_STOP = {"seq": 1, "stop": False}
FILE = {"path": "a", "digest": "cd" * 32, "size": 0}
REPORT_CHECK = {"suite": "runner", "name": "x", "status": "warn", "detail": ""}

BORDERS = [
    # rule                                          kind                document                          keywords
    ("a checkpoint of 4096 bytes passes", "runner-event-1", ("checkpoint", 4096), []),
    ("one byte more does not", "runner-event-1", ("checkpoint", 4097), ["checkpoint-bytes"]),
    ("other events may be longer", "runner-event-1", ("log", 4097), []),
    ("both quantities unknown need a reason", "gpu-sample-1", {"share": None, "busy_s": None}, ["unknown-reason"]),
    ("an unknown share alone needs one", "gpu-sample-1", {"share": None}, ["unknown-reason"]),
    ("an unknown time alone needs one", "gpu-sample-1", {"busy_s": None}, ["unknown-reason"]),
    ("a reason is enough", "gpu-sample-1", {"share": None, "busy_s": None, "unknown": WHY}, []),
    ("a reason beside known quantities is allowed", "gpu-sample-1", {"unknown": WHY}, []),
    ("bounds may equal the share", "gpu-sample-1", {"low": 0.3, "high": 0.3}, []),
    ("bounds are ordered without a share", "gpu-sample-1", {**NO_SHARE, "low": 2, "high": 1}, ["range-order"]),
    ("a stored file of no bytes has a size", "result-envelope-1", {"files": [FILE]}, []),
    ("a file may be local and stored", "result-envelope-1", {"files": [{**FILE, "local": "a"}]}, []),
    ("a bad path is told once", "result-envelope-1", {"files": [{**FILE, "path": "/a"}]}, ["portable-path"]),
    ("stop with a checkpoint", "runner-control-1", {"seq": 1, "stop": True, "checkpoint": True}, []),
    ("checkpoint with stop false", "runner-control-1", {**NO_STOP, "checkpoint": True}, ["checkpoint-needs-stop"]),
]  # fmt: skip


def document(kind: str, given: Any) -> dict[str, Any]:
    if kind == "runner-event-1":
        event_kind, size = given
        return {"t": 1, "kind": event_kind, "data": {"é": "x" * (size - len('{"é":""}'.encode()))}}
    if kind == "result-envelope-1":
        artifact = {"name": "a", **given}
        return {"schema": "m/result@1", "module_version": "1.0.0", "payload": {}, "artifacts": [artifact]}
    return {**SAMPLE, **given} if kind == "gpu-sample-1" else given


@pytest.mark.parametrize(("kind", "given", "keywords"), [row[1:] for row in BORDERS], ids=[row[0] for row in BORDERS])
def test_border(kind: str, given: Any, keywords: list[str]) -> None:
    assert [fault.keyword for fault in judge_value(kind, document(kind, given))] == keywords


def report(ok: bool | None, exit_code: int, *statuses: str) -> dict[str, Any]:
    return {
        "report": "conformance-report-1",
        "module": {"id": None, "version": None, "dir": "."},
        "kit": "0.1.0",
        "ok": ok,
        "exit": exit_code,
        "started": 1.0,
        "took_s": 0,
        "counts": {status: statuses.count(status) for status in ("pass", "fail", "unknown", "skip", "warn")},
        "host": {"platform": "linux-amd64", "python": "3.11.7", "cpus": 1},
        "checks": [{**REPORT_CHECK, "status": status} for status in statuses],
    }


@pytest.mark.parametrize(
    ("given", "keywords"),
    [
        (report(True, 0, "pass", "skip", "warn"), []),
        (report(False, 1, "pass", "fail"), []),
        (report(False, 1, "unknown"), []),  # unknown was turned into a failure
        (report(None, 3, "unknown"), []),
        (report(True, 1), ["exit-follows-ok"]),
        (report(False, 3, "fail"), ["exit-follows-ok"]),
        (report(None, 0, "unknown"), ["exit-follows-ok"]),
        (report(None, 3, "fail", "unknown"), ["ok-follows-checks"]),
    ],
)
def test_verdict_of_a_report_follows_its_checks(given: dict[str, Any], keywords: list[str]) -> None:
    assert [fault.keyword for fault in judge_value("conformance-report-1", given)] == keywords


def manifest(**tables: Any) -> dict[str, Any]:
    return {
        "manifest": 1,
        "module": {"id": "org.example.toy", "version": "0.1.0", "compat": "toy1"},
        "requires": {"platforms": ["linux-amd64"]},
        "runner": {"exec": ["python"]},
        "results": {},
        **tables,
    }


def core(wanted: str | None, stage: dict[str, Any]) -> dict[str, Any]:
    return manifest(requires={"platforms": ["linux-amd64"], "core": wanted}, stages=[{"name": "a", **stage}])


EXACT, DEFAULT = {"determinism": "exact"}, {"default": True}
MANIFESTS = [
    ("stages that say nothing need no core", core(">=1.0", {}), []),
    ("no range is any core", core(None, EXACT), []),
    ("determinism needs 2.3", core(">=2.2.9", EXACT), ["core-range"]),
    ("default needs 2.3", core(">=2.2", DEFAULT), ["core-range"]),
    ("2.3 itself is enough", core(">=2.3", EXACT), []),
    ("2.10 is above 2.3", core(">=2.10,<3", DEFAULT), []),
    ("above 2.3", core(">2.3", EXACT), []),
    ("exactly 2.3.1", core("==2.3.1", EXACT), []),
    ("3 alone", core(">=3", EXACT), []),
    ("2 alone may be 2.2", core(">=2", EXACT), ["core-range"]),
    ("an upper bound is no lower one", core("<=2.5", EXACT), ["core-range"]),
    ("the tightest lower bound counts", core(">=2, >=2.4", EXACT), []),
    ("one stage needs no merge", manifest(stages=[{"name": "a"}], coordinator={"exec": ["python"]}), []),
    ("no operations need no apply", manifest(operations=[], coordinator={"exec": ["python"]}), []),
    (
        "a stage may be the only one that compares",
        manifest(stages=[{"name": "a", "determinism": "exact", "default": True}], results={"determinism": "none"}),
        [],
    ),
    (
        "a stage without a word compares as the results table says",
        manifest(stages=[{"name": "a", "determinism": None}], results={"determinism": "none"}),
        ["comparing-stage"],
    ),
    ("an empty list after a stage leaves it alone", manifest(stages=[{"name": "a", "after": []}]), []),
    ("a stage after itself", manifest(stages=[{"name": "a"}, {"name": "b", "after": ["b"]}]), ["known-stage"]),
    ("one standalone stage needs no default", manifest(stages=[{"name": "a"}, {"name": "b", "after": "a"}]), []),
    ("the program is named by its first word", manifest(runner={"exec": ["python3"]}), ["exec-program"]),
    ("the bundle alone is no program", manifest(runner={"exec": ["{bundle}/"]}), ["exec-program"]),
    ("a proxy is the host's", manifest(runner={"exec": ["python"], "env": {"NO_PROXY": ""}}), ["reserved-env"]),
    ("a name that starts alike", manifest(runner={"exec": ["python"], "env": {"OARBANKX": "", "PATHS": ""}}), []),
    (
        "a locked environment needs both",
        manifest(runner={"exec": ["python"], "runtime": {"kind": "uv"}}),
        ["runtime-uv", "runtime-uv"],
    ),
    (
        "the coordinator is judged alike",
        manifest(coordinator={"exec": ["sh"], "env": {"OARBANK_PROTOCOL": "1"}}),
        ["exec-program", "reserved-env"],
    ),
]


@pytest.mark.parametrize(("given", "keywords"), [row[1:] for row in MANIFESTS], ids=[row[0] for row in MANIFESTS])
def test_manifest(given: dict[str, Any], keywords: list[str]) -> None:
    assert [fault.keyword for fault in judge_value("module-manifest-1", given)] == keywords


RUNNER = {"exec": ["python"]}
MISSPELT = [
    ("in a table", manifest(runner={**RUNNER, "stop_grace": 5}), ["/runner/stop_grace"]),
    ("in a table of a table", manifest(runner={**RUNNER, "gpu": {"api_any": []}}), ["/runner/gpu/api_any"]),
    (
        "behind a reference",
        manifest(runner={**RUNNER, "runtime": {"kind": "uv", "locks": ""}}),
        ["/runner/runtime/locks"],
    ),
    ("in a list", manifest(stages=[{"name": "a"}, {"name": "b", "timeout": 5}]), ["/stages/1/timeout"]),
    ("behind a choice", manifest(goldens={"fixtures": "a", "fixture": "b"}), []),  # the key it looks like is there
    (
        "in a table that may be null",
        manifest(results={"digest": {"over": ["a"], "versions": 1}}),
        ["/results/digest/versions"],
    ),
    ("a table itself", manifest(golden={"fixtures": "a"}), ["/golden"]),
    ("one like nothing known is a host's own", manifest(catalogue={}, module_={}), []),
    ("free names", manifest(runner={**RUNNER, "env": {"EXECS": "1"}}), []),
    ("nothing", manifest(goldens=None), []),
]


@pytest.mark.parametrize(("given", "places"), [row[1:] for row in MISSPELT], ids=[row[0] for row in MISSPELT])
def test_key_of_a_manifest_that_looks_misspelt_is_a_warning(given: dict[str, Any], places: list[str]) -> None:
    told = warnings("module-manifest-1", given)
    assert [fault.pointer for fault in told] == places
    assert all(fault.keyword == "unknown-key" and "; did you mean " in fault.message for fault in told)
