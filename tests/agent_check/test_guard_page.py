"""What a guard shows: the history of a journal, the page, the table and the JSON line."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check import guard_page, guard_view
from oarbank_agent_check.guard_view import GuardView, LaneView, ProgramView
from oarbank_agent_check.history import MOST_DECISIONS, MOST_POINTS, History, lane_of
from oarbank_agent_check.job_view import JobView
from oarbank_sdk.contracts import catalogue
from oarbank_sdk.contracts.judge import judge
from tests.agent_check import journals

JOB = JobView(12.0, 0.15, False, False, 0.149, 0.148, False, 1, "work")
GAME = ProgramView("game", True, True, 0.47, 59.0, 60.0, 0.333, False, None)
VIEW = GuardView(1.8e9, 62.0, "certified", (GAME,), (LaneView("a", 1, None, JOB, None),))


def view(program: ProgramView = GAME, lane: LaneView = VIEW.lanes[0]) -> GuardView:
    return GuardView(VIEW.t, VIEW.running_s, VIEW.rule, (program,), (lane,))


def told(*lines: dict[str, Any]) -> History:
    history = History()
    for line in lines:
        history.feed(line)
    return history


def pressure(t: float, value: float | None) -> dict[str, Any]:
    return {"t": t, "kind": "pressure", "program": "game", "value": value}


COMES = {"t": 0.0, "kind": "protected", "active": True, "level": 0.3, "program": "game"}
DECISIONS = [
    (COMES, "game", "jobs may have 0.300 beside it", "its level"),
    (
        {**COMES, "level": None, "speed": "learning"}, "game", "nothing that needs a duty may run beside it",
        "its own speed is being learnt",
    ),
    (
        {**COMES, "level": None, "speed": "unknown"}, "game", "nothing that needs a duty may run beside it",
        "its own speed cannot be learnt, its counter says nothing",
    ),
    ({**COMES, "level": None}, "game", "nothing that needs a duty may run beside it", "it has no level"),
    (
        {"t": 1.0, "kind": "duty", "job": "a-0123ab", "duty": 0.15, "because": [COMES, pressure(1.0, 1.25)]},
        "a", "duty 0.150", "game has slowed to 1.2 times its target (pressure 1.25)",
    ),
    (
        {"t": 1.0, "kind": "duty", "job": "a-0123ab", "duty": 0.0, "because": [pressure(1.0, None)]},
        "a", "duty 0.000", "nobody can say how game does",
    ),
    (
        {"t": 1.0, "kind": "duty", "job": "a-0123ab", "duty": 0.2, "because": [pressure(1.0, 0.5)]},
        "a", "duty 0.200", "game has not slowed to its target (pressure 0.50)",
    ),
    (
        {"t": 1.0, "kind": "duty", "job": "a-0123ab", "duty": None, "because": [{**COMES, "active": False}]},
        "a", "no limit", "the program no longer uses it",
    ),
    ({"t": 1.0, "kind": "hold", "job": "a.3-0123ab", "reason": "GPU_BLOCKED: x"}, "a.3", "waits", "GPU_BLOCKED: x"),
    ({"t": 1.0, "kind": "pause", "job": "a-0123ab", "until": 61.0, "reason": "over"}, "a", "paused", "over"),
    ({"t": 1.0, "kind": "stop", "job": "a-0123ab", "reason": "over"}, "a", "stopped", "over"),
    ({"t": 1.0, "kind": "release", "job": "a-0123ab", "reason": "over"}, "a", "given back", "over"),
    ({"t": 1.0, "kind": "ban", "module": "m", "until": 9.0, "reason": "over"}, "m", "banned for an hour", "over"),
    ({"t": 1.0, "kind": "unban", "module": "m", "because": []}, "m", "no longer banned", ""),
]  # fmt: skip


@pytest.mark.parametrize(("line", "who", "what", "why"), DECISIONS)
def test_decision_is_said_with_its_reason(line: dict[str, Any], who: str, what: str, why: str) -> None:
    (*_, decision) = told(line).decisions

    assert (decision.who, decision.what, decision.why) == (who, what, why)


def test_name_of_a_lane() -> None:
    assert [lane_of(one) for one in ("a-0123ab", "a.12-0123ab", "my-job-0123ab", "run-0123456789ab")] == [
        "a", "a", "my-job", "run-0123456789ab",
    ]  # fmt: skip


@pytest.mark.parametrize("name", journals.NAMES)
def test_every_journal_can_be_shown(name: str) -> None:
    lines = [*(journals.FOLDER / f"{name}.jsonl").read_text().splitlines(), *map(json.dumps, journals.expected(name))]
    history = told(*sorted((json.loads(line) for line in lines if line.strip()), key=lambda line: line["t"]))

    page = guard_page.page(VIEW, history, lambda t: f"{t:.0f}", now="12:00:00", over=False)

    well_formed(page)


def test_time_begins_with_this_run_whatever_moment_a_line_tells_of() -> None:
    history = History(first=1000.0, last=1000.0)
    history.feed({"t": 40.0, "kind": "unban", "module": "m", "because": []})  # it fell due while nobody was there

    page = guard_page.page(VIEW, history, lambda t: f"at {t:.0f}", now="12:00:00", over=False, earlier="<state>/j")

    assert (history.first, history.last) == (1000.0, 1000.0)
    assert page.count("<span>at 1000</span><span>at 1001</span>") == 2
    assert "<time>at 40</time>" in page
    assert "Earlier runs are told in &lt;state&gt;/j." in page
    well_formed(page)
    assert "Earlier runs" not in guard_page.page(VIEW, history, str, now="", over=True)


def test_memory_is_bounded() -> None:
    history = told(*(pressure(float(t), t % 3) for t in range(5 * MOST_POINTS)))
    for t in range(3 * MOST_DECISIONS):
        history.feed({"t": float(t), "kind": "unban", "module": "m"})

    assert len(history.programs["game"].pressure) <= MOST_POINTS
    assert history.programs["game"].pressure[-1][0] == 5 * MOST_POINTS - 1
    assert len(history.decisions) == MOST_DECISIONS


def test_page_is_one_file_without_a_script_and_shows_what_stands_and_why() -> None:
    history = told(COMES, {"t": 0.0, "kind": "admit", "job": "a-0123ab", "because": [COMES]}, DECISIONS[4][0])
    for t in range(1, 60):
        history.feed(pressure(float(t), 0.3))
        history.feed({"t": float(t), "kind": "sample", "job": "a-0123ab", "share": None if t == 30 else 0.14})

    page = guard_page.page(VIEW, history, lambda t: f"at {t:.0f}", now="12:00:00", over=False)

    well_formed(page)
    for part in ("game, protected", "0.33", "59/s", "60/s", "0.150", "0.148", "slowed to 1.2 times its target"):
        assert part in page, part
    assert page.count("<svg") == 2
    assert 'http-equiv="refresh"' in page
    assert "prefers-color-scheme:dark" in page
    assert not re.search(r"<script|src=|href=|https?:", page)
    assert 'http-equiv="refresh"' not in guard_page.page(VIEW, history, str, now="", over=True)


@given(st.text(max_size=40), st.text(max_size=40))
def test_whatever_is_said_is_escaped(name: str, words: str) -> None:
    history = told({"t": 1.0, "kind": "hold", "job": f"<b>{name}", "reason": f"<script>{words}"})
    lane = LaneView(f"<i>{name}", 1, f"<script>{words}", None, None)
    program = ProgramView(f"<u>{name}", True, True, None, None, None, None, False, f"<script>{words}")

    page = guard_page.page(view(program, lane), history, str, now="", over=False)

    assert "<script" not in page
    well_formed(page)


@given(st.dictionaries(st.sampled_from(["t", "kind", "job", "program", "duty", "value", "because", "level"]), st.one_of(
    st.none(), st.floats(0, 1), st.sampled_from(["duty", "pressure", "sample", "protected", "pause"]),
    st.lists(st.integers(), max_size=2),
)))  # fmt: skip
def test_no_line_of_a_damaged_journal_stops_the_page(line: dict[str, Any]) -> None:
    history = told(line)

    well_formed(guard_page.page(VIEW, history, str, now="", over=False))


@pytest.mark.parametrize(
    ("why", "program", "state"),
    [
        ("gone", ProgramView("g", False, False, None, None, None, None, False, None), "not running"),
        ("quiet", ProgramView("g", True, False, 0.01, 1.0, None, None, False, None), "quiet"),
        ("learning", ProgramView("g", True, True, 0.5, 1.0, None, None, True, None), "learning its speed"),
        ("mute", ProgramView("g", True, True, 0.5, None, None, None, True, "no file"), "its speed is unknown"),
        ("busy", GAME, "uses the GPU"),
    ],
)
def test_state_of_a_program(why: str, program: ProgramView, state: str) -> None:
    assert guard_view.program_state(program) == state
    assert state in guard_view.table(view(program))
    line = guard_view.lines(view(program))[0]
    assert line.startswith(f"1:02  {program.name}: {state}, ")
    assert line.endswith(f", {program.fault}") is (program.fault is not None)


@pytest.mark.parametrize(
    ("why", "lane", "line"),
    [
        ("runs", VIEW.lanes[0], "1:02  a: runs, asked 0.150, held 0.148, strikes 1, phase work"),
        ("waits", LaneView("a", 2, "GPU_BLOCKED: x", None, None), "1:02  a: waits, GPU_BLOCKED: x"),
        ("is done", LaneView("a", 0, None, None, "done in 0:12"), "1:02  a: ended, done in 0:12"),
        (
            "cannot be read",
            LaneView("a", 1, None, JobView(1.0, None, True, False, None, None, True, 0, None), None),
            "1:02  a: paused, asked -, held unknown, strikes 0, phase -",
        ),
    ],
)
def test_line_of_a_lane(why: str, lane: LaneView, line: str) -> None:
    assert guard_view.lines(view(lane=lane))[1] == line
    assert guard_view.table(view(lane=lane)).splitlines()[3].startswith("a ")


VIEWS = [
    VIEW,
    view(
        ProgramView("g", False, False, None, None, None, None, False, None), LaneView("a", 2, "GPU_BLOCKED", None, None)
    ),
    view(ProgramView("g", True, False, 0.01, 1.0, None, None, False, None), LaneView("a", 0, None, None, "done")),
    view(ProgramView("g", True, True, 0.5, 1.0, None, None, True, None)),
    view(
        ProgramView("g", True, True, 0.5, None, None, None, True, "no file"),
        LaneView("a", 1, None, JobView(1.0, None, True, False, None, None, True, 0, None), None),
    ),
    view(lane=LaneView("a", 1, None, JobView(1.0, 0.0, False, True, None, 0.5, False, 2, ""), None)),
]


@pytest.mark.parametrize("moment", VIEWS)
def test_every_moment_is_a_valid_line(moment: GuardView) -> None:
    assert judge("guard-line-1", json.dumps(guard_view.document(moment))).faults == []


def test_moments_above_show_every_state_that_the_contract_knows() -> None:
    known = json.loads(catalogue.text("guard-line-1"))["$defs"]
    shown = [guard_view.document(moment) for moment in VIEWS]

    assert {one["programs"][0]["state"] for one in shown} == set(known["Program"]["properties"]["state"]["enum"])
    assert {one["jobs"][0]["state"] for one in shown} == set(known["Job"]["properties"]["state"]["enum"])


def test_document_is_json_with_null_for_what_is_unknown() -> None:
    document = json.loads(json.dumps(guard_view.document(VIEW), allow_nan=False))

    assert document["programs"][0]["pressure"] == 0.333
    assert document["jobs"] == [
        {
            "name": "a", "state": "runs", "left": 1, "waits": None, "asked": 0.15, "held": 0.148, "reported": 0.149,
            "strikes": 1, "phase": "work", "outcome": None,
        }
    ]  # fmt: skip


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "rect", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


def well_formed(page: str) -> None:
    tags = Tags()
    tags.feed(re.sub(r"<(rect|polyline)([^>]*)/>", r"<\1\2>", page))
    assert tags.open == []
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S).split("<ol>")[0].split("svg")[0]
