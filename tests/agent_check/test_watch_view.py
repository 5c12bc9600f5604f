"""What a person sees of a watched job, and what the check makes of its samples."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.commands.watch import exit_code
from oarbank_agent_check.readings import Sample, UnknownProcess
from oarbank_agent_check.watch_view import BLOCKS, KEPT, PLAIN, Watching, check_words, hear, region, spark

SHARE = st.none() | st.floats(0, 3)


def sample(t: float, share: float | None, low: float | None = None, high: float | None = None) -> Sample:
    unknown = (UnknownProcess(5, "its driver hides it. Ask as root."),) if share is None else ()
    busy_s = None if share is None else 2 * share
    return Sample(t, 2.0, (5, 6), share, busy_s, "pdh", unknown=unknown, low=low, high=high)


def watched(duty: float | None, *shares: float | None) -> tuple[Watching, list[str]]:
    watching, lines = Watching(duty), []
    for index, share in enumerate(shares):
        watching, line = hear(watching, sample(1000 + 2 * index, share))
        lines += [line] if line else []
    return watching, lines


@pytest.mark.parametrize(
    ("shares", "words", "strikes"),
    [
        ((), "baseline, not judged", 0),
        ((0.9,), "baseline, not judged", 0),
        ((0.9, 0.4), "within its duty, 0 of 3 strikes", 0),
        ((0.9, 0.41), "over 1 of 3 in a row, 0 of 3 strikes", 0),
        ((0.9, 0.9, None), "over 2 of 3 in a row, 0 of 3 strikes", 0),
        ((0.9, 0.9, 0.9, 0.3), "within its duty, 0 of 3 strikes", 0),
        ((0.9, 0.9, 0.9, 0.9), "a strike just now, 1 of 3 strikes", 1),
        ((0.9, 0.9, 0.9, 0.9, 0.2), "within its duty, 1 of 3 strikes", 1),
        ((0, 0.41, 0.42, 0.39, 0.5, 0.5, 0.5), "a strike just now, 1 of 3 strikes", 1),
        ((0, *[0.9] * 9), "a strike just now, 3 of 3 strikes", 3),
    ],
)
def test_samples_are_judged_as_the_agent_does(shares, words, strikes):
    watching, lines = watched(0.3, *shares)
    assert check_words(watching) == words
    assert len(lines) == strikes


def test_strikes_say_what_the_agent_would_do():
    _, lines = watched(0.3, 0, *[0.9] * 9)
    assert lines[0] == "strike 1 of 3 within an hour (0.900, 0.900, 0.900): the agent would pause it for 60 s."
    assert lines[2].endswith("the agent would stop it.")


def test_a_coarse_source_is_judged_by_what_is_sure():
    watching = Watching(0.3)
    for index in range(9):
        watching, line = hear(watching, sample(1000 + 2 * index, 0.8, 0.2, 1.0))
        assert line is None
    assert "0.800 (0.200 to 1.000)" in region(watching, sample(0, 0.8, 0.2, 1.0))


@pytest.mark.parametrize(
    ("duty", "shares", "short", "code"),
    [
        (None, (0.9,) * 9, False, 0),
        (0.3, (0.3,) * 9, False, 0),
        (0.3, (0.9,) * 4, False, 1),
        (0.3, (0.9, None), False, 3),
        (0.3, (0.9, 0.9, 0.9, None), False, 3),  # a strike, but not of samples that could be read
        (0.3, (0.9, 0.9, 0.9, 0.9, None), True, 1),
        (0.3, (0.3,), True, 3),
        (None, (None,), False, 3),
    ],
)
def test_the_exit_code_follows(duty, shares, short, code):
    assert exit_code(watched(duty, *shares)[0], short=short) == code


@pytest.mark.parametrize(
    ("shares", "marks", "line"),
    [
        ([0, 0.5, 1, None], BLOCKS, "▁▅█?"),
        ([0, 0.5, 1, None], PLAIN, "_+#?"),
        ([1, 2], BLOCKS, "▅█"),  # the largest share fits
        ([], BLOCKS, ""),
    ],
)
def test_marks(shares, marks, line):
    assert spark(shares, marks) == line


@given(st.lists(SHARE, max_size=90), st.none() | st.floats(0, 1))
def test_any_shares_can_be_shown_and_an_unknown_is_never_a_mark(shares, duty):
    watching, _ = watched(duty, *shares)
    assert len(watching.shares) == min(len(shares), KEPT)
    line = spark(watching.shares)
    assert [mark == "?" for mark in line] == [share is None for share in watching.shares]
    last = sample(1.0, shares[-1] if shares else 0.0)
    assert line in region(watching, last)
    assert watching.unread == sum(share is None for share in shares)


@given(st.lists(SHARE, min_size=1, max_size=30))
def test_without_a_duty_nothing_is_judged(shares):
    watching = reduce(lambda seen, share: hear(seen, sample(1.0, share))[0], shares, Watching())
    assert (watching.struck, check_words(watching)) == (False, "no duty to judge by")


def test_the_region_says_why_something_is_unknown():
    watching, _ = watched(0.3, 0.2, None)
    assert region(watching, sample(1.0, None)).splitlines() == [
        "share unknown  duty 0.300, limit 0.400  pdh, 2 processes",
        "▂?  0 to 1.00",
        "check: over 1 of 3 in a row, 0 of 3 strikes",
        "unknown: its driver hides it. Ask as root.",
    ]
