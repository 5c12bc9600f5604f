"""What a runner is handed: control documents, spec envelopes, the environment."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oarbank_agent_check.jobs.control_document import merged
from oarbank_agent_check.jobs.environment import doctor_environment, run_environment
from oarbank_agent_check.jobs.host import Host
from oarbank_agent_check.jobs.module import Module, module
from oarbank_agent_check.jobs.specs import Task, envelope
from oarbank_sdk import canonical
from oarbank_sdk.contracts.judge import judge_value

HOST = Host("linux-amd64", "/opt/python/bin/python3", "3.11.7", 2)


def facts(**runner: Any) -> Module:
    return module(
        {
            "module": {"id": "org.example.standin", "version": "1.2.3", "compat": "c1"},
            "requires": {"platforms": ["linux-amd64"]},
            "runner": {"exec": ["python", "r.py"], **runner},
            "stages": [{"name": "selftest", "default": True, "timeout_s": 9}, {"name": "batch"}],
            "results": {},
        }
    )


MERGES = [
    ("first change", {"seq": 0}, {"gpu_duty": 0.3}, {"seq": 1, "gpu_duty": 0.3}),
    ("stop keeps the duty", {"seq": 1, "gpu_duty": 0.3}, {"stop": True}, {"seq": 2, "gpu_duty": 0.3, "stop": True}),
    (
        "unknown fields stay",
        {"seq": 4, "later": {"a": [1]}},
        {"stop": True},
        {"seq": 5, "later": {"a": [1]}, "stop": True},
    ),
    ("a field is changed", {"seq": 1, "gpu_duty": 0.3}, {"gpu_duty": 0.1}, {"seq": 2, "gpu_duty": 0.1}),
    ("seq is a whole float", {"seq": 3.0}, {}, {"seq": 4}),
    ("seq is no number", {"seq": "x"}, {}, {"seq": 8}),
]


@pytest.mark.parametrize(("why", "current", "changes", "after"), MERGES, ids=[row[0] for row in MERGES])
def test_next_document_keeps_what_it_does_not_change(why: str, current: Any, changes: Any, after: Any) -> None:
    above = 7 if current["seq"] == "x" else 0

    assert merged(json.dumps(current).encode(), changes, above=above) == after


@pytest.mark.parametrize("current", [None, b"", b"{", b"[]", b"\xff"])
def test_document_that_cannot_be_read_still_gets_a_newer_one(current: bytes | None) -> None:
    assert merged(current, {"stop": True}, above=3) == {"stop": True, "seq": 4}


def test_spec_envelope_keeps_its_contract_and_leaves_the_default_stage_out() -> None:
    one = facts()
    stage = one.stage(None)
    assert stage is not None

    document = envelope(one, Task("a", stage, {"n": 1}, {"n": 1}), "linux-amd64")

    assert judge_value("spec-envelope-1", document) == []
    assert "stage" not in document
    assert document["job_key"] == canonical.job_key("org.example.standin", "c1", {"n": 1})
    assert document["timeout_s"] == 9


def test_spec_envelope_names_another_stage_and_so_does_its_key() -> None:
    one = facts()
    stage = one.stage("batch")
    assert stage is not None

    document = envelope(one, Task("a", stage, {}, {}), "linux-amd64")

    assert document["stage"] == "batch"
    assert document["job_key"].endswith(":batch")
    assert judge_value("spec-envelope-1", document) == []


RUN_KEYS = {
    *("OARBANK_WORKDIR", "OARBANK_TMP", "TMPDIR", "OARBANK_MODULE_DATA", "OARBANK_PLATFORM", "OARBANK_MODULE"),
    *("OARBANK_ATTEMPT_ID", "OARBANK_PROTOCOL", "OARBANK_DISABLED_SERVICES", "OARBANK_SETTINGS_FILE"),
    *("OARBANK_TOOLS_FILE", "OARBANK_FOLDERS_FILE", "PYTHONUTF8", "PATH", "HOME", "LANG", "LC_ALL"),
}


def test_environment_of_a_run_is_exactly_the_contract() -> None:
    env = run_environment(facts(), HOST, workdir="/w", data="/d", attempt="a1")

    assert set(env) == RUN_KEYS
    assert env["OARBANK_MODULE"] == "standin"
    assert env["HOME"] == env["OARBANK_WORKDIR"] == "/w"
    assert env["TMPDIR"] == env["OARBANK_TMP"] == "/w/tmp"
    assert env["PATH"] == "/opt/python/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    assert env["LANG"] == env["LC_ALL"] == "C"


def test_environment_of_a_doctor_has_no_workdir_and_stays_in_the_data_directory() -> None:
    env = doctor_environment(facts(), HOST, data="/d", grants="/g")

    assert set(env) == RUN_KEYS - {"OARBANK_WORKDIR", "OARBANK_ATTEMPT_ID"}
    assert env["HOME"] == "/d"
    assert env["TMPDIR"] == "/d/tmp"


def test_environment_of_the_manifest_is_added() -> None:
    env = run_environment(facts(env={"OMP": "1"}), HOST, workdir="/w", data="/d", attempt="a1")

    assert set(env) == RUN_KEYS | {"OMP"}
