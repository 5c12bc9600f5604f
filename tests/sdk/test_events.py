"""Reading a runner's lines: only whole ones count, bad ones are skipped, an unusable duty report says why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_sdk import events
from oarbank_sdk.events import DutyReport, ReportError, complete_lines, doctor_line, duty_report

LINES = [
    # what                        bytes                 lines                 rest
    ("nothing", b"", [], b""),
    ("one line", b"a\n", [b"a"], b""),
    ("an unfinished line", b"a", [], b"a"),
    ("a line and a piece", b"a\nb", [b"a"], b"b"),
    ("CR LF", b"a\r\nb\r\n", [b"a", b"b"], b""),
    ("only one CR is dropped", b"a\r\r\n", [b"a\r"], b""),
    ("a CR that waits for its LF", b"a\nb\r", [b"a"], b"b\r"),
    ("a lone CR ends no line", b"a\rb\n", [b"a\rb"], b""),
    ("blank lines", b"\n\r\n", [b"", b""], b""),
    ("a line separator of Unicode ends none", "a\u2028b\n".encode(), ["a\u2028b".encode()], b""),
]

SKIPPED = [
    b"",
    b"   ",
    b"{",
    b"[1, 2]",
    b'"text"',
    b"null",
    b"7",
    b"{not json}",
    b'{"value": NaN}',
    b'{"value": -Infinity}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b'{"a": "\xe9"}',
    b'{"a": 1} {"b": 2}',
    b"[" * 200_000,
    b'{"n": ' + b"9" * 9000 + b"}",
]


def event(value: Any = 0.3, data: Any = None, **top: Any) -> dict[str, Any]:
    data = {"duty": 0.3, "device": "gpu"} if data is None else data
    return {"t": 1790000010.25, "kind": "metric", "name": "gpu_duty", "value": value, "data": data, **top}


def with_data(**data: Any) -> dict[str, Any]:
    return event(data={"duty": 0.3, "device": "gpu", **data})


@pytest.mark.parametrize(("data", "lines", "rest"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
def test_complete_lines(data: bytes, lines: list[bytes], rest: bytes) -> None:
    assert complete_lines(data) == (lines, rest)


@given(st.lists(st.binary(max_size=8)))
def test_pieces_give_the_same_lines_as_the_whole(pieces: list[bytes]) -> None:
    lines, rest = [], b""
    for piece in pieces:
        more, rest = complete_lines(rest + piece)
        lines += more

    assert (lines, rest) == complete_lines(b"".join(pieces))


@pytest.mark.parametrize("line", SKIPPED, ids=lambda line: repr(line[:20]))
def test_line_that_is_no_json_object_is_skipped_and_the_rest_counts(line: bytes) -> None:
    assert events.events([b'{"a": 1}', line, b'{"b": 2}']) == [{"a": 1}, {"b": 2}]


def test_last_of_repeated_keys_wins() -> None:
    assert events.events([b'{"a": 1, "a": 2}']) == [{"a": 2}]


@given(st.binary(max_size=30))
def test_any_bytes_are_objects_or_nothing(line: bytes) -> None:
    assert all(type(one) is dict for one in events.events([line]))


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"kind": "metric"},
        {"kind": "metric", "name": "loss", "value": True},
        {"kind": "log", "name": "gpu_duty"},
        {"kind": ["metric"], "name": "gpu_duty"},
    ],
)
def test_other_event_is_no_report(other: dict[str, Any]) -> None:
    assert duty_report(other) is None


def test_report_carries_what_was_said_and_keeps_the_rest() -> None:
    said = with_data(window_s=2.04, longest_unit_s=0.05, busy_source="device", units=12, idle_s=1.43, future=True)

    assert duty_report({**said, "shard": 3, "level": "info"}) == DutyReport(
        t=1790000010.25,
        share=0.3,
        duty=0.3,
        device="gpu",
        window_s=2.04,
        longest_unit_s=0.05,
        busy_source="device",
        extra={"shard": 3, "units": 12, "idle_s": 1.43, "future": True},
    )


def test_duty_and_device_may_stand_at_the_top_and_data_wins() -> None:
    report = duty_report(event(data={"device": "cpu"}, duty=0.2, device="gpu", window_s=2))

    assert report is not None
    assert (report.duty, report.device, report.window_s) == (0.2, "cpu", 2.0)


def test_null_duty_means_none_was_in_force() -> None:
    report = duty_report(event(data={"duty": None, "device": "gpu"}))

    assert report is not None
    assert report.duty is None


def test_integers_stand_for_floats_and_bounds_are_included() -> None:
    for bound in (0, 1):
        report = duty_report(event(value=bound, data={"duty": bound, "device": "gpu"}))

        assert report is not None
        assert (report.share, report.duty) == (float(bound), float(bound))


UNUSABLE = [
    # what                      event                                            reason
    ("share true", event(value=True), "value must be a number from 0 to 1; found True"),
    ("share null", event(value=None), "value must be a number from 0 to 1; found None"),
    ("share text", event(value="0.3"), "value must be a number from 0 to 1; found '0.3'"),
    ("share NaN", event(value=float("nan")), "value must be a number from 0 to 1; found nan"),
    ("share out of range", event(value=float("inf")), "value must be a number from 0 to 1; found inf"),
    ("share above 1", event(value=1.0001), "value must be a number from 0 to 1; found 1.0001"),
    ("share below 0", event(value=-0.1), "value must be a number from 0 to 1; found -0.1"),
    ("share too large for a float", event(value=10**400), "value must be a number from 0 to 1; found 1000"),
    ("no time", {k: v for k, v in event().items() if k != "t"}, "t must be present; found none"),
    ("time as text", event(t="now"), "t must be a finite number; found 'now'"),
    ("no duty anywhere", event(data={"device": "gpu"}), "duty must be present; found none"),
    ("duty true", with_data(duty=True), "duty must be a number from 0 to 1; found True"),
    ("duty as a percentage", with_data(duty=30), "duty must be a number from 0 to 1; found 30"),
    ("no device", event(data={"duty": 0.3}), "device must be present; found none"),
    ("device null", with_data(device=None), "device must be a name such as gpu or cpu; found None"),
    ("device with a newline", with_data(device="gpu\n"), "device must be a name such as gpu or cpu"),
    ("data a list", event(data=[]), "data must be an object"),
    ("empty window", with_data(window_s=0), "window_s must be above 0; found 0"),
    ("window before its start", with_data(window_s=-1), "window_s must be a finite number of at least 0; found -1"),
    ("window true", with_data(window_s=True), "window_s must be a finite number of at least 0; found True"),
    ("longest unit text", with_data(longest_unit_s="1"), "longest_unit_s must be a finite number of at least 0"),
    ("source a number", with_data(busy_source=1), "busy_source must be text; found 1"),
]


@pytest.mark.parametrize(("said", "reason"), [row[1:] for row in UNUSABLE], ids=[row[0] for row in UNUSABLE])
def test_unusable_report_says_why(said: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReportError) as caught:
        duty_report(said)

    assert reason in str(caught.value)
    assert len(str(caught.value)) < 200


ANY = (
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=1)
)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("duty", "device", "window_s", "longest_unit_s", "x"), ANY)), ANY
)
def test_any_values_give_a_usable_report_or_a_reason(data: dict[str, Any], value: Any) -> None:
    try:
        report = duty_report(event(value=value, data=data))
    except ReportError:
        return
    assert report is not None
    assert 0 <= report.share <= 1
    assert report.duty is None or 0 <= report.duty <= 1
    assert report.window_s is None or report.window_s > 0


DOCTOR = [
    ("one line", b'{"a": 1}\n', b'{"a": 1}'),
    ("no newline at the end", b'{"a": 1}', b'{"a": 1}'),
    ("chatter before", b"found 1 device\n{}\n", b"{}"),
    ("CR LF and blank lines after", b"x\r\n{}\r\n\r\n", b"{}"),
    ("several lines", b'{\n  "a": 1\n}\n', b"}"),
    ("nothing", b"", b""),
]


@pytest.mark.parametrize(("stdout", "line"), [row[1:] for row in DOCTOR], ids=[row[0] for row in DOCTOR])
def test_doctor_answers_on_its_last_line(stdout: bytes, line: bytes) -> None:
    assert doctor_line(stdout) == line


def test_report_reads_the_line_that_json_wrote() -> None:
    (one,) = events.events([json.dumps(event()).encode()])

    assert duty_report(one) == DutyReport(t=1790000010.25, share=0.3, duty=0.3, device="gpu")
