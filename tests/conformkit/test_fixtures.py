"""The fixtures file: a broken entry is one failure, and everything else in the file still counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oarbank_conformkit.fixtures import Fixtures, fixtures

GOOD = {"name": "good", "duty": 0.3, "payload": {}}


def read(value: Any) -> Fixtures:
    return fixtures("conformance.json", json.dumps(value).encode())


def spec(**changes: Any) -> dict[str, Any]:
    return {"name": "bad", "duty": 0.3, "payload": {}} | changes


BROKEN = [
    ("duty above 1", spec(duty=1.2), "/duty_specs/0/duty: must be from 0 to 1; found 1.2"),
    ("duty that is a boolean", spec(duty=True), "/duty_specs/0/duty"),
    ("duty in percent", spec(duty=30), "/duty_specs/0/duty"),
    ("no duty", {"name": "bad", "payload": {}}, "/duty_specs/0"),
    ("no payload", {"name": "bad", "duty": 0.3}, "/duty_specs/0"),
    ("unknown key", spec(windows=4), "/duty_specs/0/windows"),
    ("no window", spec(window_s=0), "/duty_specs/0/window_s"),
    ("no object", 7, "/duty_specs/0"),
    ("mount that leads out", spec(mounts={"a": "../b"}), "/duty_specs/0/mounts/a"),
]


@pytest.mark.parametrize(("why", "entry", "place"), BROKEN, ids=[row[0] for row in BROKEN])
def test_broken_entry_is_one_failure_and_stops_nothing_else(why: str, entry: Any, place: str) -> None:
    found = read({"duty_specs": [entry, GOOD]})

    assert [one.entry for one in found.entry_faults] == ["duty spec #0"]
    assert found.entry_faults[0].faults[0].line("").startswith(place)
    assert [(one.index, one.name) for one in found.duty_specs] == [(1, "good")]
    assert found.file_fault is None


def test_several_faults_of_one_entry_are_one_failure() -> None:
    found = read({"duty_specs": [spec(duty=2, window_s=0, other=1)]})

    assert len(found.entry_faults) == 1
    assert len(found.entry_faults[0].faults) == 3


def test_name_given_twice_is_found_beside_a_broken_entry() -> None:
    found = read({"duty_specs": [spec(duty=2), GOOD, GOOD]})

    assert [one.entry for one in found.entry_faults] == ["duty spec #0", "duty spec #2"]
    assert "/duty_specs/2/name" in found.entry_faults[1].faults[0].line("")
    assert [one.index for one in found.duty_specs] == [1]


def test_list_that_is_none_is_one_failure() -> None:
    found = read({"duty_specs": {"name": "a"}, "settings": {"k": 1}})

    assert [one.entry for one in found.entry_faults] == ["duty_specs"]
    assert found.duty_specs == ()
    assert found.settings == {"k": 1}


def test_other_keys_are_judged_too() -> None:
    found = read({"settings": [], "duty_specs": [GOOD]})

    assert [one.entry for one in found.entry_faults] == ["settings"]
    assert len(found.duty_specs) == 1


def test_defaults_are_the_contract() -> None:
    (one,) = read({"duty_specs": [GOOD]}).duty_specs

    assert (one.window_s, one.stage, one.datasets, one.mounts) == (4.0, None, (), {})


UNUSABLE = [
    (b"", "must be JSON"),
    (b"{", "must be JSON"),
    (b"[]", "must be an object"),
    (b"\xef\xbb\xbf{}", "byte order mark"),
    (b'{"duty_specs": [], "duty_specs": []}', "each key once"),
    (
        b'{"duty_specs": [{"name": "a", "duty": 0.1, "duty": 0.9, "payload": {}}]}',
        "/duty_specs/0: must hold each key once",
    ),
    (b"\xff", "UTF-8"),
    (b'{"a": NaN}', "NaN"),
]


@pytest.mark.parametrize(("data", "sentence"), UNUSABLE)
def test_unusable_file_is_one_failure(data: bytes, sentence: str) -> None:
    found = fixtures("conformance.json", data)

    assert found.file_fault is not None
    assert sentence in found.file_fault
    assert found.duty_specs == ()


def test_unknown_key_is_a_warning_with_a_guess() -> None:
    found = read({"duty_spec": [GOOD]})

    assert [fault.line("") for fault in found.unknown_keys] == [
        '/duty_spec: must be a known key to have an effect; found "duty_spec"; did you mean duty_specs?'
    ]
    assert found.entry_faults == ()


def test_what_is_listed_and_not_run_is_told() -> None:
    found = read({"service_specs": [{"name": "a", "service": "web", "path": "/"}], "ops": [], "duty_specs": []})

    assert found.not_run == ("service_specs",)
    assert found.has_duty_specs


def test_interop_documents_are_all_readable(interop_conformance: list[tuple[str, bytes]]) -> None:
    for name, data in interop_conformance:
        found = fixtures(name, data)
        broken = found.file_fault is not None or found.entry_faults
        assert bool(broken) == (name not in ("all-keys.json", "empty-object.json", "unknown-top.json")), name
