"""What is finished stays finished: a runner that is killed at any moment repeats no finished prompt."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_llmserve import ledger
from oarbank_llmserve.job import Job, Prompt
from oarbank_llmserve.ledger import KEPT_BYTES, KEPT_S, Ledger, clear_old, key, parse
from oarbank_llmserve.payload import read_payload
from oarbank_llmserve.sink import Completion
from tests import needs
from tests.llmserve.processes import Run, spec

PROMPTS = [{"prompt": f"prompt {n}", "id": f"id-{n}", "max_tokens": 3 + 4 * n} for n in range(6)]
PAYLOAD = {"prompts": [*PROMPTS, ""], "backend": "stub"}
COUNTS = ("prompts", "failed", "tokens", "prompt_tokens", "digest")


def lines_of(data: Path) -> list[bytes]:
    try:
        return [line for path in data.glob("ledger/*.jsonl") for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []  # its runner came to its end just now, and dropped it


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    with Run(tmp_path_factory.mktemp("w"), spec(PAYLOAD, "batch")) as run:
        assert run.wait_for_exit() == 0
        return run.json("result.json")["payload"], (run.workdir / "completions.jsonl").read_bytes()


@pytest.mark.parametrize("kills", [(1,), (2, 4), (6,)], ids=str)
def test_killed_runner_repeats_no_finished_prompt_and_comes_to_the_same_result(
    tmp_path: Path, kills: tuple[int, ...], undisturbed: tuple[dict[str, Any], bytes]
) -> None:
    data, finished = tmp_path / "data", 0
    for attempt, wanted in enumerate(kills):
        with Run(tmp_path / f"w{attempt}", spec(PAYLOAD, "batch"), data=data) as run:
            run.wait_for(lambda wanted=wanted: len(lines_of(data)) >= wanted or run.process.poll() == 0, "a ledger")
            run.process.kill()
        finished = len(lines_of(data))
    if not finished:
        return  # it was faster than its killer, and has its result

    with Run(tmp_path / "last", spec(PAYLOAD, "batch"), data=data) as run:
        assert run.wait_for_exit() == 0
        payload = run.json("result.json")["payload"]

    assert payload["resumed"] == finished
    assert {name: payload[name] for name in COUNTS} == {name: undisturbed[0][name] for name in COUNTS}
    assert (run.workdir / "completions.jsonl").read_bytes() == undisturbed[1]
    assert lines_of(data) == []
    assert [json.loads(line).get("id") for line in undisturbed[1].splitlines()] == [
        *(prompt["id"] for prompt in PROMPTS), None
    ]  # fmt: skip


def test_stopped_runner_keeps_its_ledger_and_a_finished_one_drops_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Run(tmp_path / "first", spec(PAYLOAD, "batch"), data=data) as run:
        run.wait_for(lambda: lines_of(data), "a finished prompt")
        run.control({"seq": 1, "stop": True})
        assert run.wait_for_exit() in (0, 75)
    kept = len(lines_of(data))
    with Run(tmp_path / "second", spec({**PAYLOAD, "prompts": PAYLOAD["prompts"][:2]}, "batch"), data=data) as run:
        assert run.wait_for_exit() == 0
        assert run.json("result.json")["payload"]["resumed"] == 0

    assert len(lines_of(data)) == kept  # another job's is left alone


def test_all_of_it_in_the_ledger_needs_no_engine(tmp_path: Path) -> None:
    payload = {"prompts": ["a", "b"], "backend": "stub", "max_tokens": 2}
    job = read_payload("batch", payload, "0.1.0")
    assert isinstance(job, Job)
    book = Ledger(tmp_path / f"data/ledger/{key(job, 'stub', None, {'llmserve': '0.1.0'})}.jsonl", 2)
    for index in (1, 0):
        book.put(done(index))
    book.close()
    with Run(tmp_path / "again", spec(payload, "batch"), data=tmp_path / "data") as run:
        assert run.wait_for_exit() == 0
        found = run.json("result.json")["payload"]

    assert (found["resumed"], found["prompts"], found["units"], found["tokens_per_s"]) == (2, 2, 0, None)


def test_self_test_keeps_no_ledger(tmp_path: Path) -> None:
    with Run(tmp_path / "w", spec({"prompts": ["a"], "max_tokens": 2}), data=tmp_path / "data") as run:
        assert run.wait_for_exit() == 0
    assert not (tmp_path / "data").exists()


def test_data_directory_that_takes_nothing_costs_the_ledger_and_not_the_job(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "ledger").write_text("in the way")
    with Run(tmp_path / "w", spec({**PAYLOAD, "prompts": ["a"], "max_tokens": 2}, "batch"), data=data) as run:
        assert run.wait_for_exit() == 0
    assert b"finished prompts are not kept from here on" in run.err
    assert len(run.err.splitlines()) == 1


def done(index: int, text: str = "x") -> Completion:
    return Completion(index, text, 1, 2, "end")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger/k.jsonl"


def kept(path: Path, *completions: Completion, prompts: int = 9) -> dict[int, Completion]:
    book = Ledger(path, prompts)
    for completion in completions:
        book.put(completion)
    book.close()
    again = Ledger(path, prompts)
    again.close()
    return again.found


def test_finished_prompts_are_found_again_and_failed_ones_are_not(path: Path) -> None:
    failed = Completion(1, "half", 3, 4, "error", "no cell")

    assert kept(path, done(0, "🌊\n"), failed, done(2)) == {0: done(0, "🌊\n"), 2: done(2)}


def test_torn_last_line_is_cut_off_so_that_the_next_one_is_whole(path: Path) -> None:
    kept(path, done(0), done(1))
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        found = kept(path, done(5))
        assert found[5] == done(5)
        assert len(found) == 1 + whole[:cut].count(b"\n")


@needs.posix("a limit of file sizes")
def test_full_disk_ends_the_ledger_and_says_so_once(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import resource

    book = Ledger(path, 9)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        for index in range(5):
            book.put(done(index, "x" * 2400))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    book.close()

    assert capfd.readouterr().err.count("finished prompts are not kept from here on") == 1
    assert list(kept(path)) == [0, 1]


BAD_LINES = [
    b"", b"{", b"[]", b"7", b"null", b"\xff", b"[" * 5000, b'{"index":0}',
    b'{"index":true,"text":"x","tokens":1,"prompt_tokens":2,"finish":"end"}',
    b'{"index":9,"text":"x","tokens":1,"prompt_tokens":2,"finish":"end"}',
    b'{"index":-1,"text":"x","tokens":1,"prompt_tokens":2,"finish":"end"}',
    b'{"index":0,"text":7,"tokens":1,"prompt_tokens":2,"finish":"end"}',
    b'{"index":0,"text":"x","tokens":1.5,"prompt_tokens":2,"finish":"end"}',
    b'{"index":0,"text":"x","tokens":1,"prompt_tokens":2,"finish":"error","error":"e"}',
    b'{"index":0,"text":"x","tokens":1,"prompt_tokens":2,"finish":["end"]}',
    b'{"index":0,"text":"\\ud800","tokens":1,"prompt_tokens":2,"finish":"end"}',
    b'{"index":0,"text":"x","tokens":1,"prompt_tokens":' + b"9" * 400 + b',"finish":"end"}',
]  # fmt: skip


@pytest.mark.parametrize("line", BAD_LINES)
def test_line_that_is_no_completion_is_run_again(line: bytes) -> None:
    assert parse(line, 9) is None


@given(st.binary())
def test_any_bytes_in_a_ledger_are_completions_or_nothing(data: bytes) -> None:
    for line in data.splitlines():
        assert parse(line, 9) is None or isinstance(parse(line, 9), Completion)


JOB = Job("batch", (Prompt("a", seed=3), Prompt(messages=({"role": "user", "content": "b"},))), "auto", "m.gguf")


def other_jobs() -> Iterator[tuple[str, Job]]:
    first, second = JOB.prompts
    for name, value in [
        ("text", "b"), ("max_tokens", 9), ("stop", ("x",)), ("temperature", 0.5), ("top_p", 0.5), ("top_k", 5),
        ("min_p", 0.5), ("seed", 4), ("id", "x"),
    ]:  # fmt: skip
        yield name, replace(JOB, prompts=(replace(first, **{name: value}), second))
    yield "order", replace(JOB, prompts=(second, first))


@pytest.mark.parametrize("other", [job for _, job in other_jobs()], ids=[name for name, _ in other_jobs()])
def test_whatever_decides_a_text_decides_the_ledger(other: Job) -> None:
    assert key(other, "llamacpp", "0" * 64, {"x": "1"}) != key(JOB, "llamacpp", "0" * 64, {"x": "1"})


def test_model_backend_and_versions_decide_it_too_and_its_pace_does_not() -> None:
    base = key(JOB, "llamacpp", "0" * 64, {"x": "1"})

    assert len({base, key(JOB, "mlx", "0" * 64, {"x": "1"}), key(JOB, "llamacpp", "1" * 64, {"x": "1"}),
                key(JOB, "llamacpp", "0" * 64, {"x": "2"})}) == 4  # fmt: skip
    assert (
        key(replace(JOB, longest_s=0.02, memory_gb=1.0, model="other name"), "llamacpp", "0" * 64, {"x": "1"}) == base
    )


def test_ledgers_that_nobody_came_back_for_go_by_age_and_by_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "KEPT_BYTES", 1000)
    now_s = 2_000_000_000.0
    ages = {"mine": KEPT_S * 2, "young": 10.0, "fits": 20.0, "too much": 30.0, "old": KEPT_S + 1}
    for name, age_s in ages.items():
        (tmp_path / f"{name}.jsonl").write_bytes(b"x" * 400)
        os.utime(tmp_path / f"{name}.jsonl", (now_s - age_s, now_s - age_s))
    (tmp_path / "notes.txt").write_text("not a ledger")

    clear_old(tmp_path, now_s, [tmp_path / "mine.jsonl"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fits.jsonl", "mine.jsonl", "notes.txt", "young.jsonl"]
    clear_old(tmp_path / "absent", now_s)
    assert KEPT_BYTES == 256 * 1024 * 1024


def test_stop_before_the_first_phase_leaves_nothing_beside_its_answer(tmp_path: Path) -> None:
    with Run(tmp_path / "w", spec(PAYLOAD, "batch"), control={"seq": 0, "gpu_duty": 0}, data=tmp_path / "data") as run:
        run.wait_for(lambda: list((tmp_path / "data").glob("ledger/*")), "the ledger, which comes before the load")
        run.control({"seq": 1, "stop": True})
        assert run.wait_for_exit() == 75
    assert {name for name in run.written() if not name.startswith("events")} == {"failure.json"}
