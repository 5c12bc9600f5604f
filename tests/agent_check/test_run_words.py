"""`run` asked in a wrong way: one line, exit code 2, and nothing is started or left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarbank_agent_check.cli import main
from tests.agent_check.jobs_on_trial import bundle

HERE = str(Path(__file__).parent)
CPU = ["--measure", "cpu"]
CERTIFICATES = Path(__file__).parents[2] / "schemas/examples/level-certificate-1/good"
WRONG = [
    ("no such directory", ["/nowhere", "--payload", "{}", "--duty", "0.3"], "/nowhere: must be a module's directory"),
    ("no manifest", [HERE, "--payload", "{}", "--duty", "0.3"], "must hold oarbank-module.toml"),
    ("unknown stage", ["MODULE", "--stage", "x", "--payload", "{}", "--duty", "1"], "found 'x'. There is selftest."),
    ("no JSON", ["MODULE", "--payload", "{", "--duty", "0.3"], "--payload: "),
    ("no object", ["MODULE", "--payload", "[1]", "--duty", "0.3"], "--payload: must be one JSON object; found [1]"),
    ("no number", ["MODULE", "--payload", '{"a": NaN}', "--duty", "0.3"], "--payload: "),
    ("too deep", ["MODULE", "--payload", "[" * 100_000, "--duty", "0.3"], "--payload: "),
    ("no payload file", ["MODULE", "--payload", "@/nowhere", "--duty", "0.3"], "/nowhere: must be readable"),
    (
        "payload is a directory",
        ["MODULE", "--payload", f"@{HERE}", "--duty", "0.3"],
        "must be readable; Is a directory",
    ),
    ("no duty", ["MODULE", "--payload", "{}"], "one of the arguments --duty --level is required"),
    ("duty of 0", ["MODULE", "--payload", "{}", "--duty", "0"], "must be above 0 and at most 1; found '0'"),
    ("duty is no number", ["MODULE", "--payload", "{}", "--duty", "nan"], "found 'nan'"),
    ("level alone", ["MODULE", "--payload", "{}", "--level", "0.3"], "--level and --pressure go together"),
    ("no certificate", ["MODULE", "--payload", "{}", "--level", f"@{__file__}", *CPU], "must be JSON"),
    ("certificate is a directory", ["MODULE", "--payload", "{}", "--level", f"@{HERE}", *CPU], "Is a directory"),
    (
        "out holds something",
        ["MODULE", "--payload", "{}", "--duty", "1", "--out", HERE, *["--measure", "cpu"]],
        "empty",
    ),
    (
        "state is a file",
        ["MODULE", "--payload", "{}", "--duty", "1", "--measure", "cpu", "--state", __file__],
        "folder",
    ),
]


@pytest.mark.parametrize(("why", "words", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_wrong_use_is_one_line_and_starts_nothing(
    why: str, words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = str(bundle(tmp_path))
    state = [] if "--state" in words else ["--state", str(tmp_path / "state")]
    try:
        code = main(["run", *[module if word == "MODULE" else word for word in words], *state])
    except SystemExit as ended:
        code = int(ended.code or 0)

    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert said in err
    assert not (tmp_path / "state" / "state.json").exists()


@pytest.mark.parametrize("path", sorted(CERTIFICATES.glob("*.json")), ids=lambda path: path.stem)
def test_certificate_of_something_else_starts_nothing(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--payload", "{}", "--level", f"@{path}", *CPU, "--state", str(tmp_path / "state")]

    assert main(["run", str(bundle(tmp_path)), *words]) == 1

    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"not started: {path}" in err
