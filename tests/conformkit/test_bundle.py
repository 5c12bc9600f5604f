"""A module's directory: what the caller must mend, and what is judged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from oarbank_agent_check.jobs.faults import UsageError
from oarbank_conformkit import bundle
from oarbank_conformkit.goldens import BadGolden, Golden, golden
from oarbank_conformkit.judge.manifest import judge_bundle
from tests.conformkit import bundles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bundles.build(tmp_path / "module", "")


def statuses(folder: Path) -> dict[str, str]:
    return {one.rule: one.status for one in judge_bundle(bundle.read(str(folder)))}


def details(folder: Path) -> dict[str, str]:
    return {one.rule: one.detail for one in judge_bundle(bundle.read(str(folder)))}


def test_good_directory_passes(folder: Path) -> None:
    assert set(statuses(folder).values()) == {"pass"}


def test_directory_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere: must be a module's directory; found nothing there\. Give the one"):
        bundle.read(str(tmp_path / "nowhere"))


def test_file_in_place_of_a_directory_is_wrong_use(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"found a file\. Give the one that holds"):
        bundle.read(str(folder / "runner.py"))


def test_manifest_in_place_of_its_directory_names_the_directory(folder: Path) -> None:
    with pytest.raises(UsageError, match=rf"found a file\. Give {re.escape(str(folder))}\.$"):
        bundle.read(str(folder / "oarbank-module.toml"))


def test_manifest_that_is_a_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "oarbank-module.toml").mkdir()

    with pytest.raises(UsageError, match="must be a file; found a directory of that name"):
        bundle.read(str(tmp_path))


def test_directory_without_a_manifest_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must hold oarbank-module\.toml; found no such file"):
        bundle.read(str(tmp_path))


BROKEN = [
    (
        b"manifest = 1\n[module]\nid = \n",
        r"^oarbank-module\.toml: line 3: must be TOML; found 'id ='\. Fix it: invalid value\.$",
    ),
    (b"a = 1\na = 2\n", r"line 2: must be TOML; found 'a = 2'"),
    (b"[goldens]\n[goldens]\n", r"found '\[goldens\]'\. Fix it: cannot declare \[goldens\] twice\.$"),
    (b'a = "', r"line 1: must be TOML; found 'a = \"'"),
    (b"a = 1\nb = \xff\n", r"line 2: must be UTF-8; found the byte 0xff"),
    (b"[" * 20000, r"must be TOML"),
]


@pytest.mark.parametrize(("data", "sentence"), BROKEN)
def test_manifest_that_is_no_toml_is_wrong_use_and_names_the_line(folder: Path, data: bytes, sentence: str) -> None:
    (folder / "oarbank-module.toml").write_bytes(data)

    with pytest.raises(UsageError, match=sentence) as raised:
        bundle.read(str(folder))

    assert "\n" not in str(raised.value)


def test_fixtures_that_cannot_be_read_are_wrong_use(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.json: must be readable"):
        bundle.read(str(folder), str(folder / "nowhere.json"))
    with pytest.raises(UsageError, match="must be readable"):
        bundle.read(str(folder), str(folder))


def test_fixtures_may_stand_elsewhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"duty_specs": []}')

    found = bundle.read(str(folder), str(tmp_path / "other.json"))

    assert found.fixtures is not None
    assert found.fixtures.duty_specs == ()


def test_manifest_that_breaks_its_contract_fails_and_ends_the_matter(folder: Path) -> None:
    path = folder / "oarbank-module.toml"
    path.write_text(path.read_text().replace('version = "1.2.3"', 'version = "one"'))

    found = bundle.read(str(folder))
    checks = {one.rule: one for one in judge_bundle(found)}

    assert found.module is None
    assert checks["manifest.valid"].status == "fail"
    assert "/module/version" in checks["manifest.valid"].detail
    assert "the runner was not judged." in checks["manifest.valid"].detail


def test_throttle_without_a_duty_spec_is_a_warning(folder: Path) -> None:
    (folder / "conformance.json").unlink()

    assert statuses(folder)["manifest.duty_spec"] == "warn"


def test_typing_error_in_a_key_is_a_warning_twice(folder: Path) -> None:
    (folder / "conformance.json").write_text('{"duty_spec": []}')

    found = statuses(folder)

    assert found["fixture.known_keys"] == "warn"
    assert found["manifest.duty_spec"] == "warn"
    assert details(folder)["fixture.known_keys"].endswith(
        "did you mean duty_specs? Nothing under this key was run, so no duty was measured."
    )


SPEC = {"name": "a", "duty": 0.3, "payload": {}}
UNPROVED: list[tuple[str, Any, str]] = [
    (
        "an empty list",
        {"duty_specs": []},
        "no duty was measured: conformance.json must list duty_specs; found none that",
    ),
    ("no list", {}, "found no such key"),
    ("no usable entry", {"duty_specs": [SPEC | {"duty": 2}]}, "found none that can be used"),
    ("a misspelt key", {"duty_spec": [SPEC]}, "found the key duty_spec, which nobody reads"),
    ("a file that is none", [], "found a file that cannot be read"),
    ("duty 0 alone", {"duty_specs": [SPEC | {"duty": 0}]}, "proves waiting alone"),
]


@pytest.mark.parametrize(("why", "fixtures", "words"), UNPROVED, ids=[row[0] for row in UNPROVED])
def test_throttle_that_nothing_proves_is_a_warning(why: str, fixtures: Any, words: str, folder: Path) -> None:
    (folder / "conformance.json").write_text(json.dumps(fixtures))

    assert statuses(folder)["manifest.duty_spec"] == "warn"
    assert words in details(folder)["manifest.duty_spec"]


def test_duty_0_beside_another_proves_something(folder: Path) -> None:
    specs = [SPEC | {"duty": 0}, SPEC | {"name": "b"}]
    (folder / "conformance.json").write_text(json.dumps({"duty_specs": specs}))

    assert statuses(folder)["manifest.duty_spec"] == "pass"


def test_only_where_there_are_others_it_says_that_they_are_judged(folder: Path) -> None:
    bad = SPEC | {"name": "b", "dutty": 1}
    ends = {}
    for listed in ([bad], [bad, SPEC]):
        (folder / "conformance.json").write_text(json.dumps({"duty_specs": listed}))
        ends[len(listed)] = details(folder)["fixture.entry"]

    assert ends[1].endswith("did you mean duty? Correct the entry.")
    assert ends[2].endswith("did you mean duty? Correct the entry; the others are judged.")


def test_misspelt_key_of_the_manifest_is_a_warning(folder: Path) -> None:
    path = folder / "oarbank-module.toml"
    path.write_text(path.read_text().replace("stop_grace_s", "stop_grace"))

    assert statuses(folder)["manifest.known_words"] == "warn"
    assert "did you mean stop_grace_s?" in details(folder)["manifest.known_words"]


@pytest.mark.parametrize("named", ["schemas/none.json", "goldens", "a\\u0000b"])
def test_schema_of_the_results_that_is_not_there_is_a_warning(named: str, folder: Path) -> None:
    path = folder / "oarbank-module.toml"
    path.write_text(path.read_text().replace('"result.schema.json"', f'"{named}"'))

    assert statuses(folder)["manifest.result_schema"] == "warn"


def test_schema_of_the_results_that_is_there_is_no_line(folder: Path) -> None:
    assert "manifest.result_schema" not in statuses(folder)


SCHEMAS = [
    # why, text of the schema, part of what is said of it
    ("no JSON", "{", "must be JSON"),
    ("a key twice", '{"type": "object", "type": "object"}', 'must hold each key once; found "type" twice'),
    ("no object", "[]", "must be a schema, which is an object"),
    ("another dialect", '{"$schema": "http://json-schema.org/draft-07/schema#"}', "/$schema: must be https://json-sch"),
    ("no such type", '{"properties": {"a": {"type": "txt"}}}', "/properties/a/type: must be one of"),
    ("a broken pattern", '{"properties": {"a": {"pattern": "(["}}}', "/properties/a/pattern: must be a regex"),
    ("a remote reference", '{"$ref": "https://example.org/a.json"}', "nothing is fetched; found"),
    ("another file", '{"properties": {"a": {"$ref": "other.json"}}}', 'found "other.json"'),
    ("a place that is not there", '{"$ref": "#/$defs/a"}', "every $ref must lead to a place in this file"),
    ("deep nesting", "[" * 3000, "must be nested at most"),
]


@pytest.mark.parametrize(("why", "text", "words"), SCHEMAS, ids=[row[0] for row in SCHEMAS])
def test_schema_of_the_results_that_is_none_is_a_value_with_its_reason(
    why: str, text: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("nothing may be fetched"))
    (folder / "result.schema.json").write_text(text)

    found = bundle.read(str(folder)).result_schema

    assert found is not None
    assert found.fault is not None
    assert words in found.fault


def test_schema_that_leads_out_of_the_bundle_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text("{}")
    (folder / "result.schema.json").unlink()
    (folder / "result.schema.json").symlink_to(tmp_path / "outside.json")

    found = bundle.read(str(folder)).result_schema

    assert found is not None
    assert "leads out of it" in (found.fault or "")


def test_module_that_names_no_schema_has_none(folder: Path) -> None:
    with_manifest(folder, 'schema = "result.schema.json"', "")

    assert bundle.read(str(folder)).result_schema is None


def with_manifest(folder: Path, old: str, new: str) -> Path:
    """Change one place of the manifest."""
    path = folder / "oarbank-module.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return folder


EXEC = '["python", "-I", "{bundle}/runner.py"]'
PROGRAMS = [
    ("a script that is not there", '["python", "-I", "{bundle}/other.py"]', "/runner/exec/2", "found none at other.py"),
    ("a program that is not there", '["{bundle}/bin/other"]', "/runner/exec/0", "found none at bin/other"),
    ("a program that may not be run", '["{bundle}/runner.py"]', "/runner/exec/0", "which may not be executed"),
    ("a folder as the program", '["{bundle}/goldens"]', "/runner/exec/0", "must be a file"),
]


@pytest.mark.parametrize(("why", "exec_", "at", "words"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_program_that_cannot_be_started_fails(why: str, exec_: str, at: str, words: str, folder: Path) -> None:
    with_manifest(folder, EXEC, exec_)

    assert statuses(folder)["manifest.programs"] == "fail"
    assert at in details(folder)["manifest.programs"]
    assert words in details(folder)["manifest.programs"]


def test_coordinator_that_is_not_there_fails(tmp_path: Path) -> None:
    folder = bundles.build(tmp_path / "module", "", coordinator="")
    (folder / "coordinator.py").unlink()

    assert "/coordinator/exec/2: must be a file" in details(folder)["manifest.programs"]


def test_folder_as_an_argument_is_there(folder: Path) -> None:
    with_manifest(folder, EXEC, '["python", "{bundle}/runner.py", "{bundle}/goldens"]')

    assert statuses(folder)["manifest.programs"] == "pass"


@pytest.mark.parametrize(("use", "status"), [("shared", "pass"), ("exclusive", "pass"), ("none", "warn")])
def test_throttle_without_a_gpu_is_a_warning(use: str, status: str, tmp_path: Path) -> None:
    folder = bundles.build(tmp_path / "module", "", gpu=use)

    assert statuses(folder)["manifest.gpu_use"] == status


def test_schema_of_an_operation_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    folder = bundles.build(tmp_path / "module", "", coordinator="")
    with_manifest(folder, 'title = "Queue"', 'title = "Queue"\nparams_schema = "nowhere.json"')

    assert statuses(folder)["manifest.operations"] == "warn"
    assert "/operations/0/params_schema" in details(folder)["manifest.operations"]


def test_runner_without_a_gpu_needs_no_duty_spec(tmp_path: Path) -> None:
    folder = bundles.build(tmp_path / "module", "", gpu="none", duty_specs=None)

    assert "manifest.duty_spec" not in statuses(folder)


def test_pattern_that_finds_no_golden_fails(folder: Path) -> None:
    (folder / "goldens" / "selftest.json").unlink()

    assert statuses(folder)["manifest.goldens"] == "fail"
    assert details(folder)["manifest.goldens"].endswith("the kit then says the right one.")


def test_broken_golden_says_what_to_do_in_the_words_of_json(folder: Path) -> None:
    (folder / "goldens" / "selftest.json").write_text("{}")

    assert details(folder)["manifest.goldens"] == "/expected: must be an object; found none. Correct the file."


def test_golden_that_leads_out_of_the_bundle_fails(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.json").write_text(json.dumps(bundles.golden({"units": 3})))
    (folder / "goldens" / "link.json").symlink_to(tmp_path / "outside.json")

    assert statuses(folder)["manifest.goldens"] == "fail"


def test_module_is_not_imported_by_reading_it(folder: Path) -> None:
    (folder / "runner.py").write_text("raise SystemExit('imported')")

    assert set(statuses(folder).values()) == {"pass"}


GOLDENS: list[tuple[str, dict[str, Any], str]] = [
    ("unknown key", {"playload": {}}, "/playload: must be a known key"),
    ("no digest", {"expected": {}}, "/expected/digest: must be 64 lower-case hex digits"),
    ("digest in capitals", {"expected": {"digest": "A" * 64}}, "/expected/digest"),
    ("digest of no version", {"expected": {"digest": "a" * 64, "digest_version": 0}}, "/expected/digest_version"),
    ("payload that is none", {"payload": []}, "/payload: must be an object"),
    ("empty name", {"name": ""}, "/name: must have 1 to 80 characters"),
    ("platforms that are none", {"platforms": "linux"}, "/platforms: must be a list"),
    ("mount that leads out", {"mounts": {"a": "../b"}}, "/mounts/a: must not hold a .. segment"),
    ("stage that is none", {"stage": 1}, "/stage: must be text"),
]


@pytest.mark.parametrize(("why", "changes", "sentence"), GOLDENS, ids=[row[0] for row in GOLDENS])
def test_bad_golden_names_its_place(why: str, changes: dict[str, Any], sentence: str) -> None:
    found = golden("goldens/a.json", json.dumps(bundles.golden({"units": 3}) | changes).encode())

    assert isinstance(found, BadGolden)
    assert found.fault.startswith(sentence)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b'{"name": "a", "name": "b"}'])
def test_golden_of_any_bytes_is_a_value(data: bytes) -> None:
    assert isinstance(golden("a.json", data), BadGolden)


def test_golden_with_its_defaults() -> None:
    kept = ("name", "key_inputs", "payload", "expected")
    small = {key: value for key, value in bundles.golden({"units": 3}).items() if key in kept}

    found = golden("a.json", json.dumps(small).encode())

    assert isinstance(found, Golden)
    assert (found.stage, found.platforms, found.datasets) == (None, None, ())


FILES = [
    # why, text of conformance.json, rule, its status, part of the sentence
    ("no JSON", "{", "fixture.file", "fail", "Nothing in it was run."),
    ("a key twice", '{"ops": [], "ops": []}', "fixture.file", "fail", "ops"),
    ("no object", "[]", "fixture.file", "fail", "object"),
    ("good", '{"ops": []}', "fixture.file", "pass", ""),
    (
        "what nobody runs",
        '{"store": {"a/b": 1}}',
        "fixture.used",
        "warn",
        "/store: this version of the kit reads store",
    ),
    ("a misspelt key", '{"runer_specs": []}', "fixture.known_keys", "warn", "did you mean runner_specs?"),
]


@pytest.mark.parametrize(("why", "text", "rule", "status", "words"), FILES, ids=[row[0] for row in FILES])
def test_fixtures_file_is_judged(why: str, text: str, rule: str, status: str, words: str, folder: Path) -> None:
    (folder / "conformance.json").write_text(text)

    assert statuses(folder)[rule] == status
    assert words in details(folder)[rule]
