"""Several prompts at a time on virtual time: who steps with whom, who leaves, and whose fault a failed step was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarbank_llmserve.batch import MOST_SLOTS, Batch
from oarbank_llmserve.engines import Live, OutOfMemory, PromptFault, Room, Sampler, Slicing, stub
from oarbank_llmserve.engines.stub import Stub
from oarbank_llmserve.job import Job, Prompt
from oarbank_sdk.control import Stopped
from tests.llmserve.bench import HELLO, Bench
from tests.llmserve.fakes import FakeControl, FakeDuty, ListSink, VirtualClock

LONG = [b"a", b"b", b"c", b"d", b"e", b"f"]


def widths(bench: Bench) -> list[int]:
    return [len(slots) for slots in bench.engine.steps]


def test_one_step_of_all_is_one_unit() -> None:
    bench = Bench({"a": HELLO, "b": HELLO, "c": HELLO}, slots=3)
    bench.run()

    assert [label for label, _ in bench.duty.units] == ["load", *["prefill"] * 3, *["decode"] * 3]
    assert widths(bench) == [3, 3, 3]
    assert bench.texts() == ["Hello you"] * 3


def test_finished_sequences_leave_and_waiting_prompts_enter() -> None:
    bench = Bench({"long": LONG, "x": [b"1"], "y": [b"2"], "z": [b"3"]}, slots=2)
    done = [completion.index for completion in bench.run()]

    assert done == [1, 2, 3, 0]  # as they end; the sink orders them
    assert bench.texts() == ["abcdef", "1", "2", "3"]
    assert widths(bench) == [2, 2, 2, 1, 1, 1]
    assert sorted(bench.engine.dropped) == [0, 1, 1, 1]
    assert not bench.engine.live


def test_every_prompt_ends_as_it_asked() -> None:
    prompts = [
        Prompt("a", max_tokens=2),
        Prompt("a", max_tokens=50),
        Prompt("a", max_tokens=50, stop=("lo",)),
        Prompt(messages=({"role": "user", "content": "a"},), max_tokens=1),
    ]
    bench = Bench({"a": HELLO}, prompts=prompts, slots=4)
    found = sorted(bench.run(), key=lambda completion: completion.index)

    assert [(c.text, c.finish) for c in found] == [
        ("Hello", "length"),
        ("Hello you", "end"),
        ("Hel", "stop"),
        ("Hel", "length"),
    ]


ROOMS = [
    # behaviour                                       needs (prompt + new)   slots asked   tokens asked
    ("as many slots as prompts", [10, 10, 10], 3, 10),
    ("never more than the prompts need together", [100, 10, 10], 2, 100),
    ("never more than a batch is wide", [10] * 100, MOST_SLOTS, 10),
    ("one, where nothing can be read", [], 1, 1),
]


@pytest.mark.parametrize(("needs", "slots", "tokens"), [row[1:] for row in ROOMS], ids=[row[0] for row in ROOMS])
def test_room_that_is_asked_for(needs: list[int], slots: int, tokens: int) -> None:
    prompts = [Prompt("x" * (need - 2), max_tokens=2) for need in needs] or [Prompt("nobody knows")]
    bench = Bench({"x" * (need - 2): [] for need in needs} or {"a": []}, prompts=prompts)
    bench.batch.prepare()

    assert bench.engine.reserved == (slots, tokens, False)


FAULTS = [
    # behaviour                          engine             the bad one's script          what the line says
    ("named by the engine", {"names": True}, [b"He", PromptFault("no cell")], "no cell"),
    ("found by asking each alone", {}, [b"He", RuntimeError("boom")], "RuntimeError: boom"),
]


@pytest.mark.parametrize(("engine", "script", "error"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_one_bad_prompt_ends_alone(engine: dict[str, Any], script: list[bytes | Exception], error: str) -> None:
    bench = Bench({"good": HELLO, "bad": script, "last": HELLO}, slots=3, **engine)
    found = sorted(bench.run(), key=lambda completion: completion.index)

    assert [(c.text, c.finish, c.error) for c in found] == [
        ("Hello you", "end", None),
        ("He", "error", error),
        ("Hello you", "end", None),
    ]


def test_step_that_fails_only_together_costs_nobody_a_text() -> None:
    bench = Bench({"a": HELLO, "b": LONG, "c": HELLO}, slots=3, broken_above=1)
    bench.run()

    assert bench.texts() == ["Hello you", "abcdef", "Hello you"]
    assert bench.batch.totals.failed == 0


def test_lack_of_memory_ends_the_batch_and_keeps_what_is_done() -> None:
    bench = Bench({"a": [b"x"], "b": [b"y", b"y", OutOfMemory("no memory")]}, slots=2)

    with pytest.raises(OutOfMemory):
        bench.run()
    assert [completion.index for completion in bench.sink] == [0]


def test_engine_that_cannot_make_room_fails_every_prompt_with_its_reason() -> None:
    class Broken(Stub):
        def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
            raise RuntimeError("no such symbol")

    duty = FakeDuty(clock := VirtualClock())
    batch = Batch(Job("batch", (Prompt("a"), Prompt("b")), "stub"), Broken(), duty, FakeControl(), clock=clock)
    batch.prepare()
    batch.run(sink := ListSink())

    assert [completion.error for completion in sink] == ["RuntimeError: no such symbol"] * 2


def test_those_in_flight_are_known_when_a_stop_comes() -> None:
    def stop(ctl: FakeControl) -> None:
        raise Stopped("stop in force")

    bench = Bench({"a": LONG, "b": LONG}, slots=2, ctl=FakeControl({8: stop}))
    with pytest.raises(Stopped):
        bench.run()

    assert (bench.batch.unfinished, bench.batch.unfinished_tokens) == (2, 6)
    assert not bench.sink


def test_width_climbs_to_what_fits_the_duty_and_not_above() -> None:
    """A step of n takes 0.1 s + n * 0.02 s; at duty 0.3 it may take 0.3 s. Ten would fit; nine are known to.

    The first one goes by what the prompts took: one token each, 1 ms.
    """
    script = {name: [b"x"] * 30 for name in "abcdefghijklmnop"}
    bench = Bench(script, slots=16, duty=0.3, step_s=0.1, each_s=0.02)
    bench.run()

    steps_s = [seconds for label, seconds in bench.duty.units if label == "decode"]
    assert max(steps_s) <= 0.301
    assert widths(bench)[:4] == [2, 4, 6, 8]
    assert max(widths(bench)) == 9
    assert bench.texts() == ["x" * 30] * 16


def test_width_follows_the_governors_scale() -> None:
    bench = Bench(dict.fromkeys("abcdefgh", LONG), slots=8, duty=0.5, scale=0.25)
    bench.run()

    assert max(widths(bench)) == 2
    assert bench.texts() == ["abcdef"] * 8


def test_narrow_steps_take_the_oldest_so_that_nobody_waits_for_ever() -> None:
    bench = Bench({name: [b"x"] * 8 for name in "abcd"}, slots=4, duty=0.5, step_s=0.01)

    def at_entry(entered: int) -> None:  # the duty falls when all four are under way
        if len(bench.engine.steps) == 4:
            bench.duty.shrink(0.3)

    bench.duty.at_entry = at_entry
    done = [completion.index for completion in bench.run()]

    assert done == [0, 1, 2, 3]
    assert 4 in widths(bench)
    assert widths(bench)[-8:] == [1] * 8


@pytest.mark.parametrize("slices", [1, 4])
def test_slices_are_units_of_their_own(slices: int) -> None:
    bench = Bench({"a": HELLO, "b": HELLO}, slots=2, longest_s=0.05, duty=0.5, slices=slices)
    bench.run()

    labels = [label for label, _ in bench.duty.units]
    assert labels.count("decode") == len(bench.engine.steps) * slices
    assert labels.count("prefill") == 2 * slices
    assert bench.texts() == ["Hello you"] * 2
    assert bench.engine.reserved[2] is True


def test_pause_inside_a_slice_holds_there_and_the_text_is_the_same() -> None:
    bench = Bench({"a": HELLO, "b": HELLO}, slots=2, longest_s=0.05, duty=0.5)
    held_at: list[int] = []

    def at_entry(entered: int) -> None:  # the governor holds a pause before it lets a unit begin
        if entered in (3, 11):
            held_at.append(entered)
            bench.clock.now_s += 100.0

    bench.duty.at_entry = at_entry
    bench.run()

    assert held_at == [3, 11]
    assert bench.batch.totals.busy_s < 1.0
    assert bench.texts() == ["Hello you"] * 2


@pytest.mark.parametrize("entered", range(3, 18))
def test_stop_inside_a_slice_gives_the_step_up_and_is_raised_after_it(entered: int) -> None:
    bench = Bench({"a": HELLO, "b": HELLO}, slots=2, longest_s=0.05, duty=0.5)

    def at_entry(now: int) -> None:
        if now == entered:
            raise Stopped("stop in force")

    bench.duty.at_entry = at_entry
    with pytest.raises(Stopped):
        bench.run()
    assert not bench.duty.open
    assert not bench.sink


class Cut(Stub):
    """The stand-in with so many slots and a chunk of so many tokens."""

    def __init__(self, slots: int, full_chunk: int) -> None:
        super().__init__()
        self.full_chunk = full_chunk
        self._slots = slots

    def reserve(self, slots: int, tokens: int, *, sliced: bool = False) -> Room:
        return Room(self._slots, super().reserve(slots, tokens).tokens)


class Late(Cut):
    """The same, whose prompts' last tokens go with the next step."""

    steps_last_token = True

    def __init__(self, slots: int, full_chunk: int) -> None:
        super().__init__(slots, full_chunk)
        self._unread: set[int] = set()

    def prefill(
        self, slot: int, tokens: Sequence[int], *, first: bool, last: Sampler | None, slicing: Slicing | None = None
    ) -> int | None:
        assert last is None
        self._unread.add(slot)
        return super().prefill(slot, tokens, first=first, last=None, slicing=slicing)

    def step(self, live: Sequence[Live], slicing: Slicing | None = None) -> list[int]:
        late = [one for one in live if one.slot in self._unread]
        self._unread -= {one.slot for one in late}
        read = super().prefill
        found = {one.slot: read(one.slot, [one.token], first=False, last=one.sampler) for one in late}
        others = [one for one in live if one.slot not in found]
        if others:
            found |= dict(zip([one.slot for one in others], super().step(others, slicing), strict=True))
        return [found[one.slot] or 0 for one in live]


def texts(prompts: tuple[Prompt, ...], engine: Stub, longest_s: float | None = None, scale: float = 1.0) -> list[str]:
    duty = FakeDuty(clock := VirtualClock(), 0.5, scale)
    batch = Batch(Job("batch", prompts, "stub", longest_s=longest_s), engine, duty, FakeControl(), clock=clock)
    batch.prepare()
    batch.run(sink := ListSink())
    return [completion.text for completion in sorted(sink, key=lambda completion: completion.index)]


@settings(max_examples=40)
@given(
    prompts=st.lists(
        st.builds(
            Prompt,
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
            max_tokens=st.integers(1, 12),
            temperature=st.sampled_from([0.0, 1.0]),
            seed=st.integers(0, 2**48),
        ),
        min_size=1,
        max_size=9,
    ),
    slots=st.integers(1, 9),
    full_chunk=st.integers(4, 64),
    longest_s=st.sampled_from([None, 1e-9, 1.0]),
    scale=st.floats(0.01, 1.0),
)
def test_text_depends_on_nothing_but_its_prompt(
    prompts: list[Prompt], slots: int, full_chunk: int, longest_s: float | None, scale: float
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stub, "ROUNDS_A_TOKEN", 10)
        patch.setattr(stub, "ROUNDS_A_PROMPT_TOKEN", 3)
        patch.setattr(stub, "ROUNDS_AT_ONCE", 2)
        alone = [texts((prompt,), Cut(1, 32))[0] for prompt in prompts]

        assert texts(tuple(prompts), Cut(slots, full_chunk), longest_s, scale) == alone
        assert texts(tuple(prompts), Late(slots, full_chunk), longest_s, scale) == alone
