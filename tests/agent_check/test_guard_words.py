"""`guard` asked in a wrong way: one line with the place in the file, exit code 2, and nothing is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check import operations
from oarbank_agent_check.cli import main
from oarbank_agent_check.guard_config import Match
from oarbank_agent_check.operations import QueuedJob
from oarbank_agent_check.toml_lines import line_of, path_of
from tests.agent_check.jobs_on_trial import LLMSERVE, bundle

TEXT = """\
# what to guard
gpu_jobs = "certified"

[[protect]]
name = "game"    # its label
process = "game"

progress.file = "frames"
# by module
levels = { m = 0.1 }


[[job]]
name = "a"
module = "m"
payload = { a = 1, b = { c = [
    # three lines
    1,
    2 ] } }
[[job]]
name = '''
b'''
"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 1),
        ("/gpu_jobs", 2),
        ("/nothing", 1),
        ("/protect", 4),
        ("/protect/0", 4),
        ("/protect/0/name", 5),
        ("/protect/0/target", 4),
        ("/protect/0/progress", 8),
        ("/protect/0/progress/file", 8),
        ("/protect/0/levels/m", 10),
        ("/job/0", 13),
        ("/job/0/payload/b/c/1", 16),
        ("/job/1", 20),
        ("/job/1/name", 21),
        ("/job/2", 13),
    ],
)
def test_line_of_a_key(pointer: str, line: int) -> None:
    assert line_of(TEXT, path_of(pointer)) == line


JOB = '\n[[job]]\nname = "a"\nmodule = "module"\npayload = {}\n'
GAME = '\n[[protect]]\nname = "g"\nprocess = "g"\n'
WRONG: list[tuple[str, str | bytes, str]] = [
    ("no job", "", "guard.toml: line 1: must have a [[job]] or a [[workload]]; found none"),
    ("no TOML", "a = = 1", "guard.toml: line 1: must be TOML; found 'a = = 1'"),
    ("no UTF-8", b"# \xff", "guard.toml: line 1: must be UTF-8"),
    ("a mistyped key", f'gpu_job = "never"{JOB}', "guard.toml: line 1: /gpu_job: must be a known key"),
    ("a percentage", f"{JOB}{GAME}target = 5\n", "line 10: /protect/0/target: must be above 0 and at most 1; found 5"),
    ("not a number", f"{JOB}{GAME}target = nan\n", "line 10: /protect/0/target: must be a number that a double holds"),
    ("a date", f"{JOB}{GAME}".replace("{}", "{ a = 2026-01-01 }"), "line 5: /job/0/payload/a: must be a JSON value"),
    ("nested", f"{JOB}".replace("{}", "{ a = " + "[" * 2000 + "]" * 2000 + " }"), "guard.toml: line 1: must be TOML"),
    ("a level nobody watches", f"{JOB}{GAME}level = 0.3\n", "line 7: /protect/0: must have progress beside a level"),
    ("no module", JOB.replace('"module"', '"nowhere"'), "line 4: /job/0/module: "),
    ("another stage", f'{JOB}stage = "x"\n', "line 6: /job/0/stage: must be a stage of the module; found 'x'"),
    ("no payload file", JOB.replace("{}", '"@nowhere.json"'), "nowhere.json: must be readable"),
    ("an operation of nobody", JOB.replace("payload = {}", 'op = "o"'), "/job/0/op: must be an operation of the"),
    ("no certificate", f'{JOB}{GAME}level = "@c.json"\nprogress.file = "f"\n', "c.json: must be readable"),
    ("a bad certificate", f'{JOB}{GAME}level = "@bad.json"\nprogress.file = "f"\n', "line 10: /protect/0/level: "),
]


@pytest.mark.parametrize(("why", "text", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_configuration_is_one_line(
    why: str, text: str | bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    bundle(tmp_path)
    (tmp_path / "bad.json").write_text("{}")
    (tmp_path / "guard.toml").write_bytes(text if isinstance(text, bytes) else text.encode())

    assert said in refused(capsys, "guard.toml")


@pytest.mark.parametrize(
    ("why", "config", "said"),
    [
        ("no file", "nowhere.toml", "nowhere.toml: must be readable; No such file"),
        ("a directory", ".", ".: must be readable; Is a directory"),
        ("a name of no file", "a\0b", "must be readable"),
    ],
)
def test_configuration_that_is_no_file(
    why: str, config: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, config)


def refused(capsys: pytest.CaptureFixture[str], config: str) -> str:
    code = main(["guard", config, "--measure", "cpu", "--state", "state"])
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert len(err.splitlines()) == 1, err
    return err


def test_module_says_what_is_wrong_with_the_params(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    params = '{ prompts = ["a"], per_job = 0 }'
    job = f'[[job]]\nname = "q"\nmodule = "{LLMSERVE}"\nop = "queue_prompts"\nparams = {params}\n'
    (tmp_path / "guard.toml").write_text(job)

    line = refused(capsys, "guard.toml")

    assert line.startswith("oarbank-agent-check: guard.toml: line 5: /job/0/params/per_job: must ")


JOBS = [{"job_key": "k", "spec": {"n": 1}, "stage": "batch"}, {"job_key": "k", "spec": {"n": 2}}]
GOOD = {"effects": [{"kind": "campaigns.create", "args": {}}, {"kind": "jobs.enqueue", "args": {"jobs": JOBS}}]}


def test_jobs_of_an_answer() -> None:
    assert operations.queued(GOOD, wrong) == [QueuedJob("batch", {"n": 1}), QueuedJob(None, {"n": 2})]


@pytest.mark.parametrize(
    ("why", "answer", "said"),
    [
        ("no object", [], "/op: must be answered with an object"),
        ("errors", {"errors": [{"path": "/model", "message": "must be there"}]}, "/params/model: must be there"),
        ("no effects", {}, "/op: must make a job"),
        ("no jobs", {"effects": [{"kind": "jobs.enqueue", "args": {"jobs": []}}]}, "/op: must make a job"),
        ("no spec", {"effects": [{"kind": "jobs.enqueue", "args": {"jobs": [{}]}}]}, "/op: must make jobs with a spec"),
        ("strange effects", {"effects": ["jobs", {"kind": "jobs.enqueue", "args": None}]}, "/op: must make a job"),
    ],
)
def test_answer_that_makes_no_jobs(why: str, answer: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        operations.queued(answer, wrong)


def wrong(pointer: str, message: str) -> Exception:
    return ValueError(f"{pointer}: {message}")


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        (Match(7, None, None), True),
        (Match(8, None, None), False),
        (Match(None, "game", None), True),
        (Match(None, "gam", None), False),
        (Match(None, None, "--full screen"), True),
        (Match(None, None, "--window"), False),
        (Match(7, "game", "/bin/game --full"), True),
        (Match(7, "game", "--window"), False),
    ],
)
def test_match(match: Match, fits: bool) -> None:
    assert match.fits(7, "game", ["/bin/game", "--full", "screen"]) is fits


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["guard", "--help"])

    assert ended.value.code == 0
    assert "Exit codes: 0 every job has its result" in " ".join(capsys.readouterr().out.split())
    assert json.dumps("--time-factor") not in capsys.readouterr().out
