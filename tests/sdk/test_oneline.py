"""Wrong use is one line that names the sub-command, what was perhaps meant, and where help is; for every program."""

from __future__ import annotations

import argparse
import importlib

import pytest

from oarbank_sdk.oneline import OneLineParser

PROGRAMS = {"oarbank-sdk": "oarbank_sdk", "oarbank-agent-check": "oarbank_agent_check",
            "oarbank-llmserve": "oarbank_llmserve"}  # fmt: skip
ROWS = [
    # words behind the program, the command that the line names, what it says
    ("oarbank-sdk", "validate --jsn runner-control-1 x", "validate", "--jsn (did you mean --json?)"),
    ("oarbank-sdk", "schema --jsonn", "schema", "unrecognized arguments: --jsonn"),
    ("oarbank-sdk", "conform --junt=x .", "conform", "--junt=x (did you mean --junit?)"),
    ("oarbank-sdk", "conform --window-limit 0 .", "conform", "--window-limit: must be seconds, above 0"),
    ("oarbank-sdk", "new runer x", "new", "invalid choice: 'runer' (choose from runner) (did you mean runner?)"),
    ("oarbank-sdk", "validat x", "", "invalid choice: 'validat'"),
    ("oarbank-sdk", "--versoin schema", "", "--versoin (did you mean --version?)"),
    ("oarbank-agent-check", "sample --pid 1 --intervall 3", "sample", "--intervall 3 (did you mean --interval?)"),
    ("oarbank-agent-check", "sample --pidd 1", "sample", "required: --pid (did you mean --pid?)"),
    ("oarbank-agent-check", "smaple", "", "(did you mean sample?)"),
    ("oarbank-agent-check", "guard x --measure gpuu", "guard", "--measure: invalid choice: 'gpuu'"),
    ("oarbank-agent-check", "guard x y", "guard", "unrecognized arguments: y"),
    ("oarbank-agent-check", "guard x -- --jsn", "guard", "unrecognized arguments: --jsn"),
    ("oarbank-agent-check", "run d --payload {} --duty 1 --no-chek", "run", "--no-chek (did you mean --no-check?)"),
    ("oarbank-agent-check", "", "", "required: COMMAND"),
    ("oarbank-llmserve", "batch --max-token-s 1 f", "batch", "(did you mean --max-tokens?)"),
    ("oarbank-llmserve", "batch --duty 2 f", "batch", "--duty: must be a number above 0 and up to 1; found 2"),
    ("oarbank-llmserve", "batchh", "", "(did you mean batch?)"),
]


@pytest.mark.parametrize(("program", "words", "command", "says"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_line_names_the_command_and_where_help_is(
    program: str, words: str, command: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main = importlib.import_module(f"{PROGRAMS[program]}.cli").main
    try:
        code = main(words.split())
    except SystemExit as end:
        code = int(end.code or 0)

    (line,) = capsys.readouterr().err.splitlines()
    named = f"{program} {command}".strip()
    assert code == 2
    assert line.startswith(f"{named}: ")
    assert line.endswith(f"; see {named} --help")
    assert says in line


def parser() -> OneLineParser:
    one = OneLineParser(prog="p")
    one.add_argument("--time-factor", help=argparse.SUPPRESS)
    one.add_argument("--interval")
    return one


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        parser().parse_args(words)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_option_that_no_help_shows_is_never_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(["--time-factr", "2"], capsys) == "p: unrecognized arguments: --time-factr 2; see p --help\n"
    assert parser().parse_args(["--time-factor", "2"]).time_factor == "2"


def test_long_words_are_cut_and_lines_within_them_folded(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["x" * 5000 + "\n"], capsys)

    assert line.count("\n") == 1
    assert len(line) < 150


def test_beginning_of_an_option_is_still_taken() -> None:
    assert parser().parse_args(["--int", "2"]).interval == "2"
