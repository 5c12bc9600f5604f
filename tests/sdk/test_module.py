"""A module's coordinator side as a process: handshake, verbs, every error, and a stdout that stays clean."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_sdk import canonical
from oarbank_sdk.module import InvalidParams, digest, field, serve

PROGRAM = """
import os, subprocess, sys, time
from oarbank_sdk.module import InvalidParams, field, guard, serve
guard()
print("printed at the import")
def echo(params):
    print("printed by Python"); os.write(1, b"printed by C\\n"); subprocess.run(["echo", "printed by a child"])
    return {"params": params, "nothing": None}
def wait(params):
    time.sleep(field(params, "seconds", (int, float)))
    return {}
def wrong(params):
    faults = [ValueError("no\\nway"), SystemExit(3), RecursionError("deep"), InvalidParams("/x: must be y", "/x")]
    raise faults[params["n"]]
verbs = {name: echo for name in ("params.check", "job.plan", "spec.build", "result.evaluate")}
verbs |= {"golden.list": wait, "op.plan": wrong, "result.merge": lambda params: {"x": {1, 2}}}
def started(host):
    host.log("info", "hello", platform=host.platform, settings=host.settings)
sys.exit(serve(verbs, module_id="org.example.toy", version="1.2.3", initialized=started))
"""
HELLO = {"protocol_versions": [1, 2], "host": {"name": "oarbank", "platform": "linux-amd64"}, "settings": {"a": 1}}


def request(method: str, params: Any = None, call_id: Any = 1) -> bytes:
    line = {"jsonrpc": "2.0", "id": call_id, "method": method, "params": {} if params is None else params}
    return json.dumps(line).encode() + b"\n"


def notify(method: str, params: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n"


def talk(*lines: bytes, program: str = PROGRAM) -> tuple[list[dict[str, Any]], int, str]:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], input=b"".join(lines), capture_output=True, check=False, timeout=60
    )
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert all(one["jsonrpc"] == "2.0" for one in said)
    return said, ran.returncode, ran.stderr.decode()


def test_handshake_names_the_module_and_the_verbs_it_has() -> None:
    said, status, _ = talk(request("initialize", HELLO), notify("initialized"))

    log, hello = said
    assert log["params"] == {
        "level": "info",
        "msg": "hello",
        "data": {"platform": "linux-amd64", "settings": {"a": 1}},
    }
    assert hello["result"] == {
        "protocol_version": 1,
        "module": {"id": "org.example.toy", "version": "1.2.3"},
        "capabilities": ["op.plan", "result.merge"],
    }
    assert status == 0


ERRORS: list[tuple[str, list[bytes], int, str]] = [
    # behaviour                    lines behind the handshake                            code    the message holds
    ("an unknown method", [request("job.run")], -32601, "must be a verb of the module protocol"),
    ("a verb it has not", [request("op.apply")], -32003, "must be a verb that this module advertises"),
    ("params that are a list", [request("params.check", [1])], -32602, "/params: must be an object"),
    ("params the verb refuses", [request("op.plan", {"n": 3})], -32602, "/x: must be y"),
    ("a missing field", [request("golden.list")], -32602, "/seconds: must be a whole number or a number"),
    ("a verb that raises", [request("op.plan", {"n": 0})], -32603, "op.plan: ValueError: way"),
    ("a verb that exits", [request("op.plan", {"n": 1})], -32603, "op.plan: SystemExit: 3"),
    ("a verb that recurses", [request("op.plan", {"n": 2})], -32603, "RecursionError"),
    ("a result that is no JSON", [request("result.merge")], -32603, "TypeError"),
    ("a second handshake", [request("initialize", HELLO)], -32600, "must come once"),
    ("no JSON", [b"{\n"], -32700, "line: must be JSON"),
    ("a batch", [b"[]\n"], -32600, "must be one object"),
    ("a line over the limit", [b"x" * (16 * 1024 * 1024 + 1) + b"\n"], -32600, "must be at most 16777216 bytes"),
]


@pytest.mark.parametrize(("lines", "code", "message"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_error_is_answered_and_the_next_request_is_served(lines: list[bytes], code: int, message: str) -> None:
    said, status, err = talk(request("initialize", HELLO, 0), *lines, request("params.check", {"x": 1}, 9))

    _, _, fault, last = sorted(said, key=lambda one: (one.get("id") == 9, one.get("id") != 0, "method" not in one))
    assert fault["error"]["code"] == code
    assert message in fault["error"]["message"]
    assert last["result"] == {"params": {"x": 1}}
    assert status == 0
    assert ("Traceback" in err) == (code == -32603)  # the log is the place for it


def test_pointer_travels_with_refused_params() -> None:
    said, _, _ = talk(request("initialize", HELLO, 0), request("op.plan", {"n": 3}))

    assert said[-1]["error"]["data"] == {"pointer": "/x"}


def test_before_the_handshake_nothing_is_served_and_a_foreign_version_is_told_ours() -> None:
    said, _, _ = talk(
        request("params.check", {}, 1),
        request("initialize", {}, 2),
        request("initialize", {"protocol_versions": [99, True, 2.5]}, 3),
        request("initialize", HELLO, 4),
    )

    answers = {one["id"]: one for one in said if "id" in one}
    assert answers[1]["error"]["code"] == -32600
    assert answers[2]["error"]["code"] == -32602
    assert answers[3]["error"] == {
        "code": -32001,
        "message": "/protocol_versions: must hold 1",
        "data": {"supported": [1], "requested": [99]},
    }
    assert answers[4]["result"]["protocol_version"] == 1


def test_prints_of_python_of_c_and_of_a_child_go_to_the_log() -> None:
    said, _, err = talk(request("initialize", HELLO), request("params.check", {}, 2))

    assert [one.get("id") for one in said] == [None, 1, 2]
    assert {"printed at the import", "printed by Python", "printed by C", "printed by a child"} <= set(err.splitlines())


def test_cancelled_request_is_answered_once_and_what_waits_behind_it_is_served() -> None:
    said, _, _ = talk(
        request("initialize", HELLO, 0),
        request("golden.list", {"seconds": 0.5}, 1),
        request("golden.list", {"seconds": 30}, 2),
        request("params.check", {}, 3),
        notify("$/cancel", {"id": 1}),
        notify("$/cancel", {"id": 2}),
        notify("$/cancel", {"id": 2}),
        notify("$/cancel", {"id": 77}),
        notify("$/cancel", {"id": [1]}),
    )

    answers = [(one["id"], one.get("error", {}).get("code")) for one in said if one.get("id")]
    assert sorted(answers) == [(1, -32004), (2, -32004), (3, None)]


def test_request_with_the_id_of_an_open_one_is_refused() -> None:
    said, _, _ = talk(
        request("initialize", HELLO, 0), request("golden.list", {"seconds": 0.3}, 1), request("params.check", {}, 1)
    )

    assert [one.get("error", {}).get("code") for one in said if one.get("id") == 1] == [-32600, None]


def test_shutdown_ends_it_while_stdin_stays_open() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(request("initialize", HELLO) + request("params.check", {}, 2) + notify("shutdown"))
        process.stdin.flush()
        assert process.wait(60) == 0
        assert len(process.stdout.read().splitlines()) == 3
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_stdout_that_takes_nothing_is_one_line_and_status_1() -> None:
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([sys.executable, "-I", "-c", PROGRAM], input=request("x"), stdout=full,
                             stderr=subprocess.PIPE, check=False, timeout=60)  # fmt: skip

    assert ran.returncode == 1
    assert ran.stderr.decode().splitlines()[-1].startswith("stdout: must take every answer; ")


def test_host_that_went_away_ends_it_quietly() -> None:
    process = subprocess.Popen([sys.executable, "-I", "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    time.sleep(0)
    _, err = process.communicate(request("initialize", HELLO), timeout=60)

    assert process.returncode == 0
    assert err == b"printed at the import\n"


@settings(max_examples=12)
@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([request("initialize", HELLO), request("params.check"), b'{"jsonrpc":"2.0","id":'])
        | st.from_regex(rb'\{"jsonrpc":"2.0","id":[0-9\[\]{}"]{1,3},"method":"[a-z.]{1,12}"\}\n', fullmatch=True),
        max_size=8,
    )
)
def test_any_bytes_are_answered_with_json_and_end_cleanly(pieces: list[bytes]) -> None:
    said, status, err = talk(*pieces)

    assert status == 0
    assert "Traceback" not in err
    assert all(("error" in one) or ("result" in one) or one["method"] == "log" for one in said)


def test_verbs_are_checked_before_anything_is_served() -> None:
    with pytest.raises(ValueError, match=r"missing params\.check"):
        serve({}, module_id="a.b", version="1.0.0")
    required = dict.fromkeys(("params.check", "job.plan", "spec.build", "result.evaluate", "golden.list"), dict)
    with pytest.raises(ValueError, match=r"found op\.aply"):
        serve({**required, "op.aply": dict}, module_id="a.b", version="1.0.0")  # type: ignore[dict-item]


FIELDS: list[tuple[Any, Any, Any]] = [
    # value   kind           answer, or the message
    ({"a": 1}, dict, {"a": 1}),
    (True, int, "/x: must be a whole number"),
    (True, bool, True),
    (None, list, "/x: must be a list"),
    (1.5, (int, float), 1.5),
]


@pytest.mark.parametrize(("value", "kind", "expected"), FIELDS)
def test_field(value: Any, kind: Any, expected: Any) -> None:
    if isinstance(expected, str):
        with pytest.raises(InvalidParams, match=expected):
            field({"x": value}, "x", kind)
    else:
        assert field({"x": value}, "x", kind) == expected
    assert field({}, "x", kind, 7) == 7


def test_digest_is_over_the_named_fields_alone() -> None:
    assert digest({"texts": ["a"], "seconds": 1.5}, ("texts",)) == canonical.sha256({"texts": ["a"]})
    with pytest.raises(InvalidParams, match="/texts: must be there"):
        digest({}, ("texts",))
    with pytest.raises(InvalidParams, match="finite"):
        digest({"texts": float("nan")}, ("texts",))
