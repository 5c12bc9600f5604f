r"""Windows' GPU engine counters: recordings, the bytes of the array, and the reader on a scripted pdh.dll."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.gpu_readings import Recorder
from oarbank_agent_check.readings import ProcessKey
from oarbank_agent_check.sources.pdh_parse import Item, parse_array, reading_of
from oarbank_agent_check.sources.pdh_read import NO_INSTANCE, NO_OBJECT, PATH, PdhReader
from tests.agent_check.recorded import gained, packed, recorded
from tests.agent_check.scripted_pdh import ScriptedPdh, array

ENGINE = "luid_0x00000000_0x0000C9A5_phys_0_eng_{}_engtype_3D"


def name(pid: int, engine: int = 0) -> str:
    return f"pid_{pid}_{ENGINE.format(engine)}"


def item(value: Any, *, pid: int = 7, engine: int = 0, status: Any = 0) -> dict[str, Any]:
    return {"name": name(pid, engine), "CStatus": status, "FirstValue": value}


@pytest.mark.parametrize(
    ("file", "gains"),
    [
        ("pdh_two_adapters.json", {1212: 2_300_000_000, 4752: 111_700}),
        ("pdh_name_case.json", {10472: 61_023_900}),
        ("pdh_percent_is_time.json", {4: 2_000_000_000}),
    ],
)
def test_the_handed_recordings(file, gains):
    assert gained(recorded(file), *gains) == gains


@pytest.mark.parametrize(
    ("why", "readings", "gain_ns"),
    [
        ("units of 100 ns", [[item(10)], [item(25)]], 1500),
        ("idle", [[item(10)], [item(10)]], 0),
        ("no instance at all", [[], []], 0),
        ("an engine that comes along is all new", [[item(10)], [item(10), item(5, engine=11)]], 500),
        ("eng_1 is not eng_11", [[item(10, engine=1), item(50, engine=11)], [item(12, engine=1), item(50, engine=11)]],
         200),
        ("an engine that closes takes nothing away", [[item(10), item(9, engine=1)], [item(12)]], 200),
        ("a value that fell is another process", [[item(900)], [item(30)]], 3000),
        ("and so at each reading", [[item(900)], [item(30)], [item(20)]], 5000),
        ("equal names add up", [[item(10), item(1)], [item(12), item(3)]], 400),
        ("new data is valid data", [[item(10, status=1)], [item(12, status=1)]], 200),
        ("another status is no value", [[item(10)], [item(12, status=0xC0000BC6)]], None),
        ("nor is one beside a good one", [[item(10)], [item(12), item(5, engine=1, status=0x800007D1)]], None),
        ("a missing status", [[item(10)], [{"name": name(7), "FirstValue": 12}]], None),
        ("a missing value", [[item(10)], [{"name": name(7), "CStatus": 0}]], None),
        ("a negative value", [[item(10)], [item(-1)]], None),
        ("true is no value", [[item(10)], [item(True)]], None),
        ("another process's fault is its own", [[item(10)], [item(12), item(5, pid=70, status=2)]], 200),
        ("pid 7 is not pid 77", [[item(10)], [item(12), item(500, pid=77)]], 200),
        ("nobody's instances", [[item(10)], [item(12), {"name": "_Total", "CStatus": 0, "FirstValue": 999}]], 200),
        ("past 2^53", [[item((1 << 53) + 1)], [item((1 << 53) + 3)]], 200),
    ],
)  # fmt: skip
def test_readings_to_gains(why, readings, gain_ns):
    document = {"readings": [{"t_s": 2 * n, "items": items} for n, items in enumerate(readings)]}
    assert gained(packed(document), 7) == {7: gain_ns}, why


def test_a_reading_without_items_is_unknown():
    assert gained(packed({"readings": [{"t_s": 0, "items": [item(1)]}, {"t_s": 2}]}), 7) == {7: None}


VALUES = st.dictionaries(st.integers(0, 20), st.lists(st.integers(0, 1 << 40), min_size=3, max_size=3), min_size=1)


@given(VALUES, st.randoms(use_true_random=False), st.booleans())
def test_gains_add_up_over_engines_in_any_order_and_case(engines, random, upper):
    grown = {engine: sorted(values) for engine, values in engines.items()}
    readings = []
    for n in range(3):
        items = [item(values[n], engine=engine) for engine, values in grown.items()]
        random.shuffle(items)
        if n == 1 and upper:
            items = [one | {"name": one["name"].upper()} for one in items]
        readings.append({"t_s": n, "items": items})
    expected = sum(values[2] - values[0] for values in grown.values()) * 100
    assert gained(packed({"readings": readings}), 7) == {7: expected}


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-16", exclude_characters="\0")), st.integers(0, 1 << 62))))
def test_the_array_reads_back(rows):
    items = [Item(text, 0, value) for text, value in rows]
    assert parse_array(array(4096, items), 4096, len(items)) == items


@given(st.binary(max_size=300), st.integers(0, 1 << 64), st.integers(0, 1 << 32))
def test_any_bytes_as_an_array_are_read_without_a_fault(buffer, address, count):
    assert reading_of(0.0, parse_array(buffer, address, count), [1]).t == 0.0


def reader(pdh: ScriptedPdh) -> PdhReader:
    return PdhReader(pdh, platform="win32", clock=lambda: 1.0)


KEY = ProcessKey(7, 1.0)


@pytest.mark.parametrize("grows", [0, 1, 3])
def test_one_wildcard_counter_by_its_english_name_gives_everybody(grows):
    pdh = ScriptedPdh([Item(name(7), 0, 10), Item(name(8), 0, 99)], [Item(name(7), 0, 30)], grows=grows)
    source = reader(pdh)
    assert [[c.value for c in source.read([KEY]).counters] for _ in range(2)] == [[1000], [3000]]
    assert (pdh.opened, pdh.path) == (1, PATH)
    source.close()
    source.close()
    assert pdh.closed == 1


@pytest.mark.parametrize(
    ("pdh", "reason"),
    [
        (ScriptedPdh(add=NO_OBJECT), "no GPU Engine counters"),
        (ScriptedPdh(NO_OBJECT), "no GPU Engine counters"),
        (ScriptedPdh(0xC0000001), "0xc0000001"),
        (ScriptedPdh([Item(name(7), 0, 1)], grows=99), "0x800007d2"),
    ],
)
def test_what_windows_refuses_is_unknown(pdh, reason):
    reading = reader(pdh).read([KEY])
    assert reason in reading.unknown[7].reason


@pytest.mark.parametrize("nothing", [NO_INSTANCE, []])
def test_no_instance_is_a_known_zero(nothing):
    reading = reader(ScriptedPdh(nothing)).read([KEY])
    assert (reading.counters, reading.unknown) == ((), {})


@pytest.mark.parametrize(("platform", "word"), [("linux", "Linux"), ("darwin", "macOS"), ("aix", "aix")])
def test_elsewhere_it_says_where_it_belongs(platform, word):
    why = PdhReader(platform=platform).hindrance()
    assert why is not None
    assert f"this is {word}: Windows only" in why.reason


def test_without_the_library_it_is_unknown_not_a_traceback():
    source = PdhReader(platform="win32")  # and on this system there is no pdh.dll, or it can read
    why = source.hindrance()
    assert why is None or why.reason
    source.close()


def test_what_it_records_reads_as_it_was():
    source = reader(ScriptedPdh([Item(name(7), 0, 10), Item(name(8), 0, 99)], [Item(name(7), 0, 30)], NO_OBJECT))
    assert isinstance(source, Recorder)
    files = source.recording([source.raw([KEY]) for _ in range(3)])
    assert gained(list(files.values()), 7) == {7: 2000}
    assert b"pid_8_" not in files["pdh.json"]
