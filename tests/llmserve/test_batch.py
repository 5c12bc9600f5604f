"""The loop on virtual time, one prompt after the other: units, safe points, and prompts that fail alone."""

from __future__ import annotations

import pytest

from oarbank_llmserve.chunks import GOVERNED_S
from oarbank_llmserve.engines import OutOfMemory, PromptFault
from oarbank_sdk.control import Stopped
from tests.llmserve.bench import HELLO, Bench
from tests.llmserve.fakes import FakeControl


@pytest.mark.parametrize("tick_s", [0.0, 1e-6, 1e-3])
def test_each_generation_step_is_one_unit(tick_s: float) -> None:
    bench = Bench({"hi": HELLO}, tick_s=tick_s)

    assert [(c.text, c.tokens, c.prompt_tokens, c.finish) for c in bench.run()] == [("Hello you", 3, 2, "end")]
    assert [label for label, _ in bench.duty.units] == ["load", "prefill", "decode", "decode", "decode"]


def test_completions_come_in_the_order_of_the_prompts() -> None:
    bench = Bench({"a": [b"1"], "b": [b"2"], "c": [b"3"]}, prompts=["c", "a", "b", "a"])

    assert [(c.index, c.text) for c in bench.run()] == [(0, "3"), (1, "1"), (2, "2"), (3, "1")]


ENDS = [
    # behaviour                      script                   job                       text       tokens  finish
    ("at the model's end", HELLO, {}, "Hello you", 3, "end"),
    ("at max_tokens", HELLO, {"max_tokens": 2}, "Hello", 2, "length"),
    ("at a stop string", HELLO, {"stop": ("lo",)}, "Hel", 2, "stop"),
    ("at a stop over tokens", HELLO, {"stop": ("o y",)}, "Hell", 3, "stop"),
    ("where the model is full", HELLO, {"room": 4}, "Hello you", 3, "context"),
    ("after one token, where the prompt fills the model", HELLO, {"room": 2}, "Hel", 1, "context"),
    ("at once", [], {}, "", 0, "end"),
    ("inside a character", [b"\xc3"], {}, "\ufffd", 1, "end"),
]


@pytest.mark.parametrize(
    ("script", "job", "text", "tokens", "finish"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_completion_ends(script: list[bytes], job: dict[str, object], text: str, tokens: int, finish: str) -> None:
    bench = Bench({"hi": script}, **job)  # type: ignore[arg-type]

    assert [(c.text, c.tokens, c.finish) for c in bench.run()] == [(text, tokens, finish)]


def test_no_step_is_taken_for_a_token_nobody_wants() -> None:
    bench = Bench({"hi": HELLO}, max_tokens=1)
    bench.run()

    assert bench.engine.steps == []


FAULTS = [
    # behaviour                             script of the bad prompt         text so far  what the line says
    ("the engine refuses a step", [b"He", PromptFault("no cell")], "He", "no cell"),
    ("the engine breaks in a step", [b"He", RuntimeError("boom\nlast line")], "He", "RuntimeError: last line"),
    ("the engine breaks in prefill", [ValueError("bad")], "", "ValueError: bad"),
    ("an error without words", [b"He", KeyError()], "He", "KeyError: KeyError"),
]


@pytest.mark.parametrize(("script", "text", "error"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_one_bad_prompt_never_ends_the_run(script: list[bytes | Exception], text: str, error: str) -> None:
    bench = Bench({"good": HELLO, "bad": script, "last": HELLO})

    assert [(c.index, c.text, c.finish, c.error) for c in bench.run()] == [
        (0, "Hello you", "end", None),
        (1, text, "error", error),
        (2, "Hello you", "end", None),
    ]
    assert (bench.batch.totals.failed, bench.batch.totals.prompts, bench.batch.totals.first_error) == (1, 3, error)


def test_prompt_without_tokens_or_too_long_is_skipped_without_device_work() -> None:
    bench = Bench({"good": [b"x"], "much too long": []}, prompts=["nobody knows", "much too long", "good"], room=8)

    assert [(c.finish, c.error) for c in bench.run()] == [
        ("error", "the prompt has no tokens"),
        ("error", "the prompt has 13 tokens, and the model takes 8 at most"),
        ("end", None),
    ]
    assert bench.engine.chunks == [4]


def test_room_is_made_for_the_longest_prompt_and_its_completion() -> None:
    bench = Bench({"a": [], "abcdef": []}, max_tokens=10)
    bench.run()

    assert bench.engine.reserved == (2, 16, False)


@pytest.mark.parametrize("fault", [OutOfMemory("no memory"), MemoryError()])
def test_lack_of_memory_ends_the_batch(fault: Exception) -> None:
    bench = Bench({"a": [b"x"], "b": [b"y", fault], "c": [b"z"]})

    with pytest.raises(OutOfMemory):
        bench.run()
    assert [c.index for c in bench.sink] == [0]


def stop(ctl: FakeControl) -> None:
    raise Stopped("stop in force")


def test_stop_in_the_middle_of_a_completion_leaves_it_unwritten() -> None:
    bench = Bench({"a": HELLO, "b": HELLO}, ctl=FakeControl({9: stop}))

    with pytest.raises(Stopped):
        bench.run()
    assert [c.index for c in bench.sink] == [0]
    assert not bench.duty.open


def test_tokens_of_the_prompt_in_flight_are_known_and_only_while_it_is() -> None:
    bench = Bench({"a": HELLO, "b": HELLO}, ctl=FakeControl({9: stop}))
    before = bench.batch.unfinished_tokens
    with pytest.raises(Stopped):
        bench.run()
    done = Bench({"a": HELLO})
    done.run()

    assert (before, bench.batch.unfinished_tokens, done.batch.unfinished_tokens) == (None, 1, None)


def test_stop_that_comes_out_of_the_governor_is_no_fault_of_the_prompt() -> None:
    bench = Bench({"a": HELLO})

    def at_entry(entered: int) -> None:
        if entered == 4:
            raise Stopped("in the idle")

    bench.duty.at_entry = at_entry
    with pytest.raises(Stopped):
        bench.run()
    assert not bench.sink


def test_there_is_a_safe_point_before_every_unit() -> None:
    bench = Bench({"a" * 200: HELLO, "b": HELLO})
    bench.run()

    assert bench.ctl.safe_points >= len(bench.duty.units)


def test_stop_while_prompts_are_tokenized_needs_no_unit() -> None:
    bench = Bench({"a": HELLO}, prompts=["a"] * 100, ctl=FakeControl({50: stop}))

    with pytest.raises(Stopped):
        bench.run()
    assert not bench.duty.units


def test_threads_change_with_the_next_unit_and_only_on_a_change() -> None:
    bench = Bench({"a": HELLO})

    def at_entry(entered: int) -> None:  # in the middle of an idle
        bench.ctl.threads = {3: 1, 5: None}.get(entered, bench.ctl.threads)

    bench.duty.at_entry = at_entry
    bench.run()

    assert bench.engine.threads == [1, None]


def test_prefill_units_follow_the_governors_scale() -> None:
    bench = Bench({"x" * 100: []}, duty=0.5, scale=0.25)
    bench.run()

    assert bench.engine.chunks == [16, 16, 16, 16, 16, 16, 4]


def test_prefill_burst_stays_short_after_many_short_prompts() -> None:
    """The governor alone would take a unit of five tokens for a full one."""
    bench = Bench({"short": [], "x" * 500: []}, prompts=[*["short"] * 9, "x" * 500], duty=0.3, token_s=0.01)
    bench.run()

    bursts = [seconds for label, seconds in bench.duty.units if label == "prefill"]
    assert max(bursts) <= GOVERNED_S + 0.001
    assert sum(bench.engine.chunks) == 9 * 5 + 500


def test_time_inside_units_is_counted_and_idle_is_not() -> None:
    bench = Bench({"hi": HELLO}, duty=0.1, step_s=0.02, tick_s=0.0)
    bench.run()

    totals = bench.batch.totals
    assert totals.units == 4
    assert totals.busy_s == pytest.approx(0.002 + 3 * 0.02)
    assert totals.longest_unit_s == pytest.approx(0.02)


def test_progress_tells_prompts_and_tokens() -> None:
    bench = Bench({"a": [b"x", b"y"], "b": [b"z"]})
    bench.run()

    assert bench.told == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
