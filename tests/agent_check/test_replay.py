"""`replay` from outside: what it takes, what it refuses, and what it prints."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oarbank_agent_check import cli, journal
from oarbank_sdk.contracts.judge import judge
from tests.agent_check import journals
from tests.contracts import examples

JOB = b'{"t": 0, "kind": "job", "job": "a", "module": "m", "cooperative": true, "gpu_use": "shared", "pausable": true}'

# (what is wrong, lines, which line, what is said)
WRONG = [
    ("no JSON", [JOB, b"job"], 2, "must be JSON"),
    ("no object", [b"3"], 1, "must be an object; found 3"),
    ("NaN", [b'{"t": NaN, "kind": "tick"}'], 1, "found NaN"),
    ("beyond a double", [b'{"t": 1e400, "kind": "tick"}'], 1, "must be a number that a double holds"),
    ("a key twice", [b'{"t": 1, "t": 2, "kind": "tick"}'], 1, "must hold each key once"),
    ("deep", [b"[" * 5000], 1, "must be"),
    ("bytes", [b"\xff\xfe"], 1, "must be UTF-8"),
    ("a byte order mark", [b"\xef\xbb\xbf" + JOB], 1, "byte order mark"),
    ("no kind", [b'{"t": 1}'], 1, "/kind: must be one of job, job_end"),
    ("kind is a list", [b'{"t": 1, "kind": ["tick"]}'], 1, "/kind: must be one of"),
    ("no time", [b'{"kind": "tick"}'], 1, "/t: must be there in a line of kind tick; found nothing"),
    ("time is true", [b'{"t": true, "kind": "tick"}'], 1, "/t: must be a number of seconds, -1e12 to 1e12; found true"),
    ("a time far away", [b'{"t": 2e12, "kind": "tick"}'], 1, "-1e12 to 1e12; found 2000000000000"),
    ("a job without a name", [JOB.replace(b'"a"', b'""')], 1, "/job: must be a text that is not empty"),
    ("a percentage", [b'{"t": 0, "kind": "protected", "active": true, "level": 40}'], 1, "/level: must be a number, 0"),
    ("time goes back", [JOB, b"", b'{"t": -1, "kind": "tick"}'], 3, "/t: must not go backwards"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "lines", "number", "said"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_line_is_told_with_its_number_and_nothing_is_printed(wrong, lines, number, said, tmp_path, capfd):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")

    assert cli.main(["replay", str(path)]) == 2

    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith(f"oarbank-agent-check: {path}: line {number}: ")
    assert said in err


@pytest.mark.parametrize("name", ["missing.jsonl", "", "a\0b"])
def test_a_file_that_cannot_be_read_is_told(name, tmp_path, capfd):
    assert cli.main(["replay", str(tmp_path / name) if "\0" not in name else name]) == 2

    assert "must be a file that can be read; found: " in capfd.readouterr().err


def test_a_closed_standard_input_is_told(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdin", None)

    assert cli.main(["replay", "-"]) == 2
    assert "must be an open standard input; found it closed" in capfd.readouterr().err


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"t": 0, "kind": "tick"}', b'{"t": 0, "kind": "tick"}\r\n'])
def test_nothing_to_order_prints_nothing(data, tmp_path, capfd):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(data)

    assert cli.main(["replay", str(path)]) == 0
    assert capfd.readouterr().out == ""


def test_orders_in_a_journal_are_passed_over_and_stdin_is_one_too(monkeypatch, capfd):
    name = "ladder-the-third-strike-in-an-hour-stops-and-bans"
    told = journals.inputs(name)
    mixed = [journal.line_of(one) for one in (*journals.judge(told), *told)]

    class Stdin:
        buffer = io.BytesIO("\n".join(mixed).encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert cli.main(["replay", "-"]) == 0
    orders = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [one["kind"] for one in orders] == [one["kind"] for one in journals.expected(name)]


OTHERS = [None, True, 0, 1, 2, -1, 0.5, "", "x", [], {}, {"m": 0.5}, {"": 1}]
# What lines of other kinds have is no business of a line's reader.
FIELDS = {kind: {"t", "kind", *shape.__dataclass_fields__} for kind, shape in journal.INPUTS.items()}
VALUES = [example for example in examples.readable("agent-journal-1") if isinstance(example, dict)]


@given(st.data())
def test_the_reader_takes_what_the_contract_allows_and_nothing_else(data):
    value = dict(data.draw(st.sampled_from(VALUES)))
    for _ in range(data.draw(st.integers(0, 2))):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.booleans()):
            value.pop(key)
        else:
            value[key] = data.draw(st.sampled_from(OTHERS))
        if not value:
            break
    kind = str(value.get("kind"))
    assume(kind not in journal.ACTIONS)
    own = {field: value[field] for field in value if field in FIELDS.get(kind, set(value))}

    allowed = not judge("agent-journal-1", json.dumps(own)).faults
    try:
        taken = journal.input_of(own) is not None
    except ValueError:
        taken = False
    assert taken == allowed, own
