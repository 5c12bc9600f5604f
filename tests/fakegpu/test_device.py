"""The device's schedule: who runs when, and whose time it is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakegpu.device import Device, Ran

A, B = 1, 2

SCHEDULES = [
    # what, [(submitted at, client, length)], [(client, ticket, start, end)]
    ("starts at once on an idle device", [(5, A, 10)], [(A, 1, 5, 15)]),
    ("waits for the one before it", [(0, A, 10), (1, B, 3)], [(A, 1, 0, 10), (B, 1, 10, 13)]),
    ("nobody is favoured", [(0, A, 10), (1, A, 10), (2, B, 1)], [(A, 1, 0, 10), (A, 2, 10, 20), (B, 1, 20, 21)]),
    ("an idle gap is nobody's", [(0, A, 10), (50, A, 10)], [(A, 1, 0, 10), (A, 2, 50, 60)]),
    ("at the very end of another", [(0, A, 10), (10, B, 5)], [(A, 1, 0, 10), (B, 1, 10, 15)]),
]


@pytest.mark.parametrize(("what", "submitted", "expected"), SCHEDULES, ids=[what for what, *_ in SCHEDULES])
def test_first_come_first_served_to_the_end(
    what: str, submitted: list[tuple[int, int, int]], expected: list[tuple[int, int, int, int]]
) -> None:
    device = Device()
    for at, client, length in submitted:
        device.submit(client, length, at)

    assert device.advance(1000) == [Ran(*one) for one in expected]
    assert device.next_end_ns() is None


def test_running_buffer_counts_up_to_now() -> None:
    device = Device()
    device.submit(A, 100, 0)

    assert device.advance(30) == []
    assert device.busy_ns(A) == 30
    assert device.busy_ns(B) == 0
    assert device.next_end_ns() == 100


def test_looking_late_changes_no_time() -> None:
    prompt, late = Device(), Device()
    for device in (prompt, late):
        device.submit(A, 10, 0)
        device.submit(B, 10, 1)
    seen = [ran for now in range(40) for ran in prompt.advance(now)]

    assert late.advance(1_000_000) == seen
    assert late.busy_ns(A) == prompt.busy_ns(A) == 10


def test_clock_that_steps_back_gives_no_time() -> None:
    device = Device()
    device.submit(A, 100, 50)

    device.advance(20)

    assert device.busy_ns(A) == 0
    assert device.submit(A, 1, 10) == 2
    assert device.advance(200)[-1] == Ran(A, 2, 150, 151)


def test_slower_clock_stretches_what_starts_from_then_on() -> None:
    device = Device()
    device.submit(A, 10, 0)
    device.slowness = 2.5
    device.submit(A, 10, 1)

    assert device.advance(100) == [Ran(A, 1, 0, 10), Ran(A, 2, 10, 35)]


def test_client_that_vanishes_loses_what_waits_and_ends_what_runs() -> None:
    device = Device()
    for client in (A, A, B):
        device.submit(client, 10, 0)

    device.vanish(A, 4)

    assert device.owes(A)
    assert device.advance(100) == [Ran(A, 1, 0, 10), Ran(B, 1, 10, 20)]
    assert not device.owes(A)


def test_buffer_of_nothing_is_refused() -> None:
    device = Device()

    with pytest.raises(ValueError, match="at least 1 ns"):
        device.submit(A, 0, 0)
    assert not device.owes(A)


@dataclass(frozen=True)
class Submit:
    after_ns: int
    client: int
    length_ns: int


submits = st.lists(st.builds(Submit, st.integers(0, 200), st.integers(1, 3), st.integers(1, 100)), min_size=1)


@given(submits)
def test_no_moment_is_lost_and_none_is_given_twice(buffers: list[Submit]) -> None:
    device = Device()
    now, asked = 0, []
    for one in buffers:
        now += one.after_ns
        asked.append((now, one.client, device.submit(one.client, one.length_ns, now), one.length_ns))
    end = now + sum(one.length_ns for one in buffers)

    ran = device.advance(end)

    assert [(one.client, one.ticket) for one in ran] == [(client, ticket) for _, client, ticket, _ in asked]
    free = 0
    for (at, _, _, length), one in zip(asked, ran, strict=True):
        assert one.start_ns == max(at, free)  # work conserving: it starts when it is there and the device is free
        assert one.end_ns - one.start_ns == length
        free = one.end_ns
    busy = {client: device.busy_ns(client) for client in (1, 2, 3)}
    assert busy == {c: sum(one.length_ns for one in buffers if one.client == c) for c in busy}
    assert sum(busy.values()) <= end


@given(submits, st.lists(st.integers(0, 3000), min_size=2, max_size=20), st.integers(1, 3), st.integers(0, 1000))
def test_one_engine_is_never_busier_than_the_wall(
    buffers: list[Submit], looks: list[int], gone: int, gone_at: int
) -> None:
    device = Device()
    now = 0
    before: tuple[int, int] | None = None
    pending = [(at, "look", None) for at in looks] + [(gone_at, "gone", None)]
    for one in buffers:
        now += one.after_ns
        pending.append((now, "submit", one))
    for at, what, one in sorted(pending, key=lambda event: event[0]):
        if one is not None:
            device.submit(one.client, one.length_ns, at)
        elif what == "gone":
            device.vanish(gone, at)
        device.advance(at)
        total = sum(device.busy_ns(client) for client in (1, 2, 3))
        if before is not None:
            assert 0 <= total - before[1] <= at - before[0]
        before = at, total
