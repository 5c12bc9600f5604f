"""The coordinator's verbs: params to jobs, jobs to specs, results to verdicts, one operation to effects."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_llmserve.coordinator import Bundle, verbs
from oarbank_llmserve.coordinator_program import read_bundle
from oarbank_llmserve.job import Job
from oarbank_llmserve.payload import read_payload
from oarbank_sdk.module import REQUIRED, InvalidParams
from tests.llmserve.processes import BUNDLE
from tests.llmserve.test_job import BAD_MODELS, BAD_PAYLOADS, JSON

MANIFEST = tomllib.loads((BUNDLE / "oarbank-module.toml").read_text())
VERBS = verbs(read_bundle(BUNDLE, MANIFEST))
GOLDEN = json.loads((BUNDLE / "goldens/selftest.json").read_text())
ASKED = {"prompts": ["a", "b", "c"], "model": "m.gguf", "per_job": 2}
SCHEMA = json.loads((BUNDLE / "schemas/queue_prompts.json").read_text())


def apply(params: Any) -> dict[str, Any]:
    return dict(VERBS["op.apply"]({"verb": "queue_prompts", "target": None, "params": params, "actor": "x"}))


def jobs(params: Any) -> list[dict[str, Any]]:
    return apply(params)["effects"][1]["args"]["jobs"]


def test_manifest_names_the_verbs_and_the_operation_that_are_there() -> None:
    assert [name for name in VERBS if name not in REQUIRED] == MANIFEST["coordinator"]["capabilities"]
    (operation,) = MANIFEST["operations"]
    assert operation["verb"] == "queue_prompts"
    assert (BUNDLE / operation["params_schema"]).is_file()
    assert {effect["kind"] for effect in apply(ASKED)["effects"]} == set(operation["effects"])


def test_interop_job_key_is_the_key_of_a_queued_job() -> None:
    """The same inputs under the ids of the interoperability set."""
    vectors = json.loads(Path("tests/contracts/interop/job-key/vectors.json").read_text(encoding="utf-8"))["cases"]
    (case,) = [one for one in vectors if one["stage"] == "batch" and "model" in one["key_inputs"]]
    foreign = verbs(Bundle(case["module_id"], case["compat"], 1, ("texts",), ()))
    answer = foreign["op.apply"]({"verb": "queue_prompts", "params": case["key_inputs"]})

    (job,) = answer["effects"][1]["args"]["jobs"]
    assert job["job_key"] == case["job_key"]


def test_operation_is_a_campaign_and_a_job_for_each_part() -> None:
    answer = apply(ASKED)
    create, enqueue = answer["effects"]

    assert create["args"]["campaign_id"] == enqueue["args"]["campaign_id"]
    assert [(job["stage"], job["labels"], job["spec"]["prompts"]) for job in enqueue["args"]["jobs"]] == [
        ("batch", {"part": 0}, ["a", "b"]),
        ("batch", {"part": 1}, ["c"]),
    ]
    assert all(job["job_key"].endswith(":batch") for job in enqueue["args"]["jobs"])
    assert all(isinstance(read_payload("batch", job["spec"]), Job) for job in enqueue["args"]["jobs"])
    assert answer["response"] == "toast"
    assert answer["result"] == {"campaign_id": create["args"]["campaign_id"], "jobs": 2, "prompts": 3}
    assert VERBS["op.plan"]({"verb": "queue_prompts", "params": ASKED})["effects"] == answer["effects"]


def test_campaign_is_that_of_its_params_whatever_their_order_and_form() -> None:
    def campaign(params: Any) -> str:
        return apply(params)["effects"][0]["args"]["campaign_id"]

    assert campaign(ASKED) == campaign(dict(reversed(ASKED.items()))) == campaign({**ASKED, "stop": None})
    assert campaign(ASKED) == campaign({**ASKED, "backend": "auto", "max_tokens": 256})
    assert campaign(ASKED) != campaign({**ASKED, "per_job": 1})
    assert campaign(ASKED).startswith("c_llm_")
    assert len(campaign(ASKED)) == len("c_llm_") + 10
    assert campaign({**ASKED, "campaign_id": "c_mine"}) == "c_mine"


def test_equal_parts_have_one_key_and_labels_that_keep_both() -> None:
    one, two = jobs({**ASKED, "prompts": ["a"] * 4})

    assert one["job_key"] == two["job_key"]
    assert (one["labels"], two["labels"]) == ({"part": 0}, {"part": 1})


@pytest.mark.parametrize("params", [{"temperature": 1, "seed": 40}, {}])
def test_split_changes_no_prompts_seed_or_settings(params: dict[str, Any]) -> None:
    asked = {**ASKED, **params, "prompts": ["a", {"prompt": "b", "temperature": 0.5}, "c", "d", "e"]}
    whole = read_payload("batch", asked)
    parts = [read_payload("batch", job["spec"]) for job in jobs(asked)]

    assert isinstance(whole, Job)
    assert whole.prompts == tuple(prompt for part in parts if isinstance(part, Job) for prompt in part.prompts)


def test_node_and_name_are_the_callers() -> None:
    create, enqueue = apply({**ASKED, "target_node": "n1", "name": "my prompts"})["effects"]

    assert create["args"]["name"] == "my prompts"
    assert {job["target_node"] for job in enqueue["args"]["jobs"]} == {"n1"}


def test_5000_prompts_are_as_many_jobs_as_one_enqueue_takes() -> None:
    assert len(jobs({"prompts": ["a"] * 5000, "per_job": 1, "backend": "stub"})) == 5000


BAD_PARAMS: list[tuple[str, Any, str, str]] = [
    # behaviour              params                                   pointer           the message holds
    ("no prompts", {"model": "m"}, "/prompts", "must be a list of prompts"),
    ("a misspelt key", {**ASKED, "max_token": 3}, "/max_token", "did you mean max_tokens?"),
    ("per_job 0", {**ASKED, "per_job": 0}, "/per_job", "from 1 to 1000"),
    ("a bad prompt", {**ASKED, "prompts": ["a", {"prompt": 3}]}, "/prompts/1/prompt", "must be text"),
    ("a campaign in capitals", {**ASKED, "campaign_id": "C_X"}, "/campaign_id", "must be a small letter"),
    ("a name of two lines", {**ASKED, "name": "a\nb"}, "/name", "printable"),
    ("a node that is a number", {**ASKED, "target_node": 3}, "/target_node", "must be 1 to 200"),
]


@pytest.mark.parametrize(
    ("params", "pointer", "message"), [row[1:] for row in BAD_PARAMS], ids=[row[0] for row in BAD_PARAMS]
)
def test_bad_params_are_answered_with_a_pointer_and_no_effect(params: Any, pointer: str, message: str) -> None:
    answer = apply(params)

    assert (answer["effects"], answer["response"]) == ([], "errors")
    assert [(one["path"], one["code"]) for one in answer["errors"]] == [(pointer, "bad_spec")]
    assert message in answer["errors"][0]["message"]
    with pytest.raises(InvalidParams) as refused:
        VERBS["op.plan"]({"verb": "queue_prompts", "params": params})
    assert refused.value.pointer == f"/params{pointer}"


def test_params_of_a_study_are_checked_and_brought_into_one_form() -> None:
    good = VERBS["params.check"]({"params": {"prompts": ["a"], "backend": "stub", "stop": None}})
    bad = VERBS["params.check"]({"params": {"prompts": [], "campaign_id": "c_mine"}})

    assert good["normalized_params"] == {"prompts": ["a"], "backend": "stub", "max_tokens": 256, "per_job": 8}
    assert VERBS["params.check"]({"params": good["normalized_params"]}) == good
    assert (bad["ok"], bad["errors"][0]["path"]) == (False, "/campaign_id")


def test_planned_jobs_build_specs_of_the_stage_batch() -> None:
    plan = VERBS["job.plan"]({"params": ASKED, "datasets": [], "study": None})["jobs"]
    specs = VERBS["spec.build"]({"jobs": plan, "datasets": [], "target_spec_version": 1})["specs"]

    assert [(job["stages"], job["label"]) for job in plan] == [(["batch"], "part 0"), (["batch"], "part 1")]
    assert [spec["key_inputs"] for spec in specs] == [job["key_inputs"] for job in plan]
    assert [stage["payload"] for spec in specs for stage in spec["stages"]] == [job["spec"] for job in jobs(ASKED)]
    with pytest.raises(InvalidParams, match="/jobs/0/key_inputs/prompts"):
        VERBS["spec.build"]({"jobs": [{"key_inputs": {}, "stages": ["batch"]}]})


def test_golden_is_listed_for_a_node_and_builds_its_own_payload() -> None:
    (golden,) = VERBS["golden.list"]({"node_class": {"platform": "linux-amd64", "capabilities": [], "pools": {}}})[
        "goldens"
    ]
    (spec,) = VERBS["spec.build"]({"jobs": [golden]})["specs"]

    assert golden["expected"] == GOLDEN["expected"]
    assert spec["stages"][0] == {"stage": "selftest", "payload": GOLDEN["payload"], "datasets": [], "mounts": {}}


def test_golden_of_another_platform_is_not_listed() -> None:
    bundle = Bundle("a.b", "c", 1, ("texts",), ({**GOLDEN, "platforms": ["darwin", "linux-arm64"]},))
    listed = {name: len(verbs(bundle)["golden.list"]({"node_class": {"platform": name}})["goldens"])
              for name in ("darwin-arm64", "linux-arm64", "linux-amd64")}  # fmt: skip

    assert listed == {"darwin-arm64": 1, "linux-arm64": 1, "linux-amd64": 0}


def result(**payload: Any) -> dict[str, Any]:
    fields = {"prompts": 3, "failed": 0, "tokens": 9, "digest": "0" * 64, **payload}
    artifacts = [{"name": "completions", "files": [{"path": "completions.jsonl", "local": "completions.jsonl"}]}]
    return {"schema": "llmserve/result@1", "module_version": "0.1.0", "payload": fields, "artifacts": artifacts}


BATCH = {"payload": {"prompts": ["a", "b", "c"], "backend": "stub", "max_tokens": 4}, "stage": "batch"}
SELFTEST = {"payload": {"prompts": ["a", "b", "c"], "max_tokens": 4}}
VERDICTS: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    # behaviour               spec   result                          verdict            reason
    ("counts that fit", BATCH, result(), "accept", "ok"),
    ("some failed", BATCH, result(failed=2), "accept", "ok"),
    ("all failed", BATCH, result(failed=3), "reject", "llmserve/bad_result"),
    ("too few prompts", BATCH, result(prompts=2), "reject", "llmserve/bad_result"),
    ("more tokens than asked", BATCH, result(tokens=13), "reject", "llmserve/bad_result"),
    ("a count that is true", BATCH, result(failed=False), "reject", "llmserve/bad_result"),
    ("no digest", BATCH, result(digest=None), "reject", "llmserve/bad_result"),
    ("no artifact", BATCH, {**result(), "artifacts": []}, "reject", "llmserve/bad_result"),
    ("another schema", BATCH, {**result(), "schema": "toy/result@1"}, "reject", "llmserve/bad_result"),
    ("no payload", BATCH, {**result(), "payload": 3}, "reject", "llmserve/bad_result"),
    ("a spec that cannot succeed", {**BATCH, "payload": {}}, result(), "fail_permanent", "llmserve/bad_spec"),
    ("texts of a self-test", SELFTEST, result(texts=["x", "y", "z"]), "accept", "ok"),
    ("a self-test without them", SELFTEST, result(), "reject", "llmserve/bad_result"),
    ("two texts of three", SELFTEST, result(texts=["x", "y"]), "reject", "llmserve/bad_result"),
    (
        "the golden's task with other texts",
        {"payload": GOLDEN["payload"]},
        result(prompts=4, texts=["w", "x", "y", "z"]),
        "reject",
        "llmserve/wrong_digest",
    ),
]


@pytest.mark.parametrize(
    ("spec", "found", "verdict", "reason"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS]
)
def test_verdict(spec: dict[str, Any], found: dict[str, Any], verdict: str, reason: str) -> None:
    answer = VERBS["result.evaluate"]({"spec": spec, "result": found})

    assert (answer["verdict"], answer["reason"]) == (verdict, reason)
    assert ("digest" in answer) == (verdict == "accept" and "stage" not in spec)
    json.dumps(answer, allow_nan=False)


def test_merged_result_is_the_batchs() -> None:
    assert VERBS["result.merge"]({"stages": {"selftest": {"a": 1}, "batch": {"b": 2}}}) == {"result": {"b": 2}}
    with pytest.raises(InvalidParams):
        VERBS["result.merge"]({"stages": {}})


@pytest.mark.parametrize("name", [*VERBS])
def test_verb_refuses_params_it_cannot_use_and_nothing_else_happens(name: str) -> None:
    try:
        assert isinstance(VERBS[name]({}), dict)
    except InvalidParams:
        assert name != "golden.list"  # without a node class: every golden


FIELDS = ["params", "jobs", "spec", "result", "stage", "stages", "verb", "node_class", "target_spec_version"]


@settings(max_examples=150)
@given(st.sampled_from([*VERBS]), st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_params_are_answered_or_refused_the_same_way_twice(name: str, params: dict[str, Any]) -> None:
    def said() -> str:
        try:
            return json.dumps(VERBS[name](params))
        except InvalidParams as refused:
            return f"{refused.pointer} {refused}"

    assert said() == said()


VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


TAKEN = [
    ASKED,
    {**ASKED, "prompts": [[{"role": "user", "content": "x"}]]},
    {"prompts": [{"prompt": "a", "id": 3, "seed": None}], "backend": "stub"},
]


@pytest.mark.parametrize("params", TAKEN)
def test_schema_takes_what_the_module_takes(params: dict[str, Any]) -> None:
    assert VALIDATOR.is_valid(params)
    assert apply(params)["response"] == "toast"


# What JSON Schema does not say: characters, sums, one key's need of another, and names.
BEYOND_THE_SCHEMA = {
    "half a surrogate pair", "a conversation of 200001 characters", "one id twice", "no model with auto",
    "no model with llamacpp", "a seed of 5000 digits", "temperature without end", "temperature not a number",
}  # fmt: skip


@pytest.mark.parametrize(
    "row", [row for row in BAD_PAYLOADS if row[0] not in BEYOND_THE_SCHEMA], ids=lambda row: row[0]
)
def test_schema_refuses_what_the_module_refuses(row: tuple[str, Any, str]) -> None:
    assert not VALIDATOR.is_valid(row[1])


@pytest.mark.parametrize("name", [*BAD_MODELS])
def test_schema_refuses_most_names_and_the_module_all_of_them(name: str) -> None:
    leads_out = set(name) & set("/\\:\x00 \n~%") or name.startswith(".") or not name
    assert not leads_out or not VALIDATOR.is_valid({**ASKED, "model": name})
    assert apply({**ASKED, "model": name})["response"] == "errors"


def test_coordinator_answers_a_host_from_a_bare_interpreter() -> None:
    asks = [("initialize", {"protocol_versions": [1]}), ("op.apply", {"verb": "queue_prompts", "params": ASKED})]
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": m, "params": p}) for n, (m, p) in enumerate(asks)]
    ran = subprocess.run([sys.executable, "-I", str(BUNDLE / "llmserve_module.py")], input="\n".join(lines),
                         capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    hello, answer = [json.loads(line)["result"] for line in ran.stdout.splitlines()]

    assert hello["module"] == {"id": MANIFEST["module"]["id"], "version": MANIFEST["module"]["version"]}
    assert answer == json.loads(json.dumps(apply(ASKED)))
    assert (ran.returncode, ran.stderr) == (0, "")
