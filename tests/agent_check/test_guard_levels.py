"""Levels beside a program: numbers, and certificates that hold for the work that is to run here, or are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oarbank_agent_check import guard_levels
from oarbank_agent_check.guard_config import Level, Match, Protect
from oarbank_agent_check.guard_levels import Certificates
from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.jobs.manifest import read_manifest
from oarbank_agent_check.jobs.specs import Task
from oarbank_agent_check.lanes import JobPlan
from tests.agent_check.jobs_on_trial import bundle

MODULE = "org.example.standin"


def plan(folder: Path) -> JobPlan:
    found = read_manifest(str(bundle(folder))).module
    assert found is not None
    stage = found.stage(None)
    assert stage is not None
    return JobPlan("a", found, folder / "module", Task("a", stage, {}, {}), "key", folder / "data")


def protect(level: Level | None, of_module: Level | None = None) -> Protect:
    levels = {} if of_module is None else {MODULE: of_module}
    return Protect("game", Match(1, None, None), 0.05, None, level, levels)


def certificates(folder: Path) -> Certificates:
    return Certificates(this_host(), [plan(folder)], folder, lambda where, what: ValueError(f"{where}: {what}"))


@pytest.fixture
def granting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate whose own judging is not the subject: it grants what its file says."""

    class Verdict:
        valid = True

        def __init__(self, data: bytes) -> None:
            self.value = json.loads(data)

    monkeypatch.setattr(guard_levels, "judge", lambda kind, data: Verdict(data))
    monkeypatch.setattr(
        guard_levels.certificate, "level_from",
        lambda data, where, host, work: json.loads(data).get("level") or f"{where}: is void: the module was another",
    )  # fmt: skip
    return tmp_path


def write(folder: Path, name: str, level: float | None, module: str = MODULE) -> str:
    (folder / name).write_text(json.dumps({"level": level, "module": {"id": module}}))
    return f"@{name}"


def test_numbers_are_taken_as_they_are(tmp_path: Path) -> None:
    assert certificates(tmp_path).levels("/protect/0", protect(0.3, 0.1)) == (0.3, {MODULE: 0.1})
    assert certificates(tmp_path).levels("/protect/0", protect(None)) == (None, {})


def test_certificate_grants_its_own_module_a_level_and_nobody_else(granting: Path) -> None:
    given = write(granting, "c.json", 0.25)

    assert certificates(granting).levels("/protect/0", protect(given)) == (None, {MODULE: 0.25})
    assert certificates(granting).levels("/protect/0", protect(0.1, given)) == (0.1, {MODULE: 0.25})


@pytest.mark.parametrize(
    ("why", "level", "module", "said"),
    [
        ("void", None, MODULE, r"^/protect/0/level: .*c.json: is void: the module was another"),
        ("of nobody here", 0.2, "org.example.other", "must certify a job's module; found org.example.other"),
    ],
)
def test_certificate_that_does_not_hold_here_is_refused_with_the_reason(
    why: str, level: float | None, module: str, said: str, granting: Path
) -> None:
    given = write(granting, "c.json", level, module)

    with pytest.raises(ValueError, match=said):
        certificates(granting).levels("/protect/0", protect(given))


def test_file_that_is_no_certificate_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}")

    with pytest.raises(ValueError, match=r"/protect/0/level: .*c.json: must have "):
        certificates(tmp_path).levels("/protect/0", protect("@c.json"))
