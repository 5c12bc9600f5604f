"""ioreg's text and plist: whose a client is, what its counter says, and what is unknown."""

from __future__ import annotations

import plistlib
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.gpu_readings import NotARecording
from oarbank_agent_check.sources.ioreg_parse import parse_plist, parse_text, readings
from tests.agent_check.recorded import gained, recorded


def usage(*times: Any) -> list[dict[str, Any]]:
    return [{"API": "Metal", "lastSubmittedTime": 9, "accumulatedGPUTime": time} for time in times]


def client(entry: int, pid: Any, **properties: Any) -> dict[str, Any]:
    return {"IORegistryEntryID": entry, "IOUserClientCreator": f"pid {pid}, a, name", **properties}


def plist(*clients: dict[str, Any]) -> bytes:
    return plistlib.dumps([{"IOObjectClass": "AGXAccelerator", "IORegistryEntryID": 1,
                            "IORegistryEntryChildren": list(clients)}])  # fmt: skip


def _printed(value: Any) -> str:
    if isinstance(value, list):
        return f"({','.join(map(_printed, value))})"
    if isinstance(value, dict):
        return "{" + ",".join(f'"{key}"={_printed(one)}' for key, one in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def text(*clients: dict[str, Any]) -> bytes:
    """Print clients as ioreg does: properties sorted, so that the creator comes last."""
    lines = ["+-o AGXAccelerator  <class AGXAccelerator, id 0x1, registered, matched, active>", "  | {", "  | }"]
    for one in clients:
        lines.append(
            f"  +-o AGXDeviceUserClient  <class AGXDeviceUserClient, id {one['IORegistryEntryID']:#x}, active>"
        )
        lines.append("  |   {")
        rest = sorted(key for key in one if key != "IORegistryEntryID")
        lines += [f'  |     "{key}" = {_printed(one[key])}' for key in rest]
        lines.append("  |   }")
    return "\n".join(lines).encode()


FORMS = pytest.mark.parametrize("form", [plist, text])


@pytest.mark.parametrize(
    ("files", "gains"),
    [
        (["agx_several_clients.r1.txt", "agx_several_clients.r2.txt"], {4242: 500_000_000, 808: 0}),
        (["agx_plist.r1.plist", "agx_plist.r2.plist"], {123: 1_000_000_001, 1234: 42, 124: 5_000_000}),
        (["agx_client_vanishes.r1.txt", "agx_client_vanishes.r2.txt"], {60: 1_000_000_000}),
    ],
)
def test_the_handed_recordings(files, gains):
    assert gained(recorded(*files), *gains) == gains


A = client(0x101, 7, AppUsage=usage(100))


@FORMS
@pytest.mark.parametrize(
    ("why", "before", "after", "gain_ns"),
    [
        ("all entries of AppUsage", [client(2, 7, AppUsage=usage(1, 2))], [client(2, 7, AppUsage=usage(5, 9))], 11),
        ("all clients of a process", [A], [A, client(2, 7, AppUsage=usage(5))], 5),
        ("a client that closed takes nothing away",
         [A, client(2, 7, AppUsage=usage(5))], [client(2, 7, AppUsage=usage(8))], 3),
        ("no AppUsage: nothing submitted yet", [client(2, 7)], [client(2, 7, AppUsage=usage(8))], 8),
        ("an empty AppUsage too", [client(2, 7, AppUsage=[])], [client(2, 7, AppUsage=usage(8))], 8),
        ("the plain property of older machines", [client(2, 7, accumulatedGPUTime=5)],
         [client(2, 7, accumulatedGPUTime=8)], 3),
        ("AppUsage goes before the plain property", [client(2, 7, accumulatedGPUTime=5, AppUsage=usage(1))],
         [client(2, 7, accumulatedGPUTime=99, AppUsage=usage(2))], 1),
        ("the same entry printed twice", [A, A], [client(0x101, 7, AppUsage=usage(150))] * 2, 50),
        ("other processes' clients", [A, client(2, 77, AppUsage=usage(1))], [A, client(2, 77, AppUsage=usage(9))], 0),
        ("pid 0 is nobody", [A, client(2, 0, AppUsage=usage(1))], [A, client(2, 0, AppUsage=usage(9))], 0),
        ("no clients at all", [], [], 0),
        ("AppUsage without the counter", [A], [client(0x101, 7, AppUsage=[{"API": "Metal"}])], None),
        ("a counter that is text", [A], [client(0x101, 7, AppUsage=usage("many"))], None),
        ("a counter below 0", [A], [client(0x101, 7, AppUsage=usage(-5))], None),
        ("AppUsage that is no list", [A], [client(0x101, 7, AppUsage="Metal")], None),
        ("a fault in another client of the process", [A], [A, client(2, 7, AppUsage=usage("?"))], None),
        ("past 2^63", [client(2, 7, AppUsage=usage((1 << 64) - 9))], [client(2, 7, AppUsage=usage((1 << 64) - 2))], 7),
        ("a counter that fell is held", [A], [client(0x101, 7, AppUsage=usage(60))], 0),
    ],
)  # fmt: skip
def test_clients_to_gains(form, why, before, after, gain_ns):
    assert gained([form(*before), form(*after)], 7) == {7: gain_ns}, why


@FORMS
@given(
    clients=st.dictionaries(
        st.integers(2, 1 << 60), st.tuples(st.sampled_from([7, 8]), st.lists(st.tuples(st.integers(0, 1 << 60),
        st.integers(0, 1 << 60)), max_size=3)), max_size=5),
    closing=st.integers(0, 3),
)  # fmt: skip
def test_each_client_counts_by_itself(form, clients, closing):
    def at(moment: int, kept: list[int]) -> bytes:
        return form(
            *(client(e, clients[e][0], AppUsage=usage(*(sorted(t)[moment] for t in clients[e][1]))) for e in kept)
        )

    entries = list(clients)
    left = entries[closing:]
    expected = {
        pid: sum(max(t) - min(t) for e in left if clients[e][0] == pid for t in clients[e][1]) for pid in (7, 8)
    }
    assert gained([at(0, entries), at(1, left[::-1])], 7, 8) == expected


@FORMS
def test_a_client_below_another_is_a_client(form):
    deep = client(2, 7, AppUsage=usage(5))
    if form is plist:
        document = plist({"IORegistryEntryChildren": [deep]})
    else:
        document = text(deep).replace(b"  +-o AGXDev", b"  | |   +-o AGXDev")
    [reading] = readings([document], [7])
    assert [(counter.client, counter.value) for counter in reading.counters] == [("0x2", 5)]


@pytest.mark.parametrize("nothing", [b"", b"  \n", plistlib.dumps([])])
def test_nothing_listed_is_no_gpu_to_read_not_a_zero(nothing):
    [reading] = readings([nothing], [7])
    assert "no GPU accelerator" in reading.unknown[7].reason


def test_a_client_without_a_registry_id_cannot_be_followed():
    document = text(A).replace(b", id 0x101", b"")
    assert 7 in readings([document], [7])[0].unknown


@pytest.mark.parametrize(
    "printed",
    ['({"accumulatedGPUTime"=5)', '({"accumulatedGPUTime"=5}', "(" * 5000, '({"a"=1 "accumulatedGPUTime"=5})', "({5})",
     '({"accumulatedGPUTime"})', "(,)", '({"accumulatedGPUTime"=})', '"cut', "(" + "{" * 400],
)  # fmt: skip
def test_a_damaged_value_is_unknown(printed):
    document = text(A).decode().replace(_printed(A["AppUsage"]), printed).encode()
    assert 7 in readings([document], [7])[0].unknown


def test_names_with_braces_and_commas_change_nothing():
    odd = client(2, 7, AppUsage=[{"API": "a},{(=", "accumulatedGPUTime": 5}])
    assert [one.time for one in parse_text(text(odd)) or ()] == [5]


@given(st.binary(max_size=200), st.sampled_from([b"", b"+-o ", b"<?xml", b"<plist>", b"<plist><dict><key>"]))
def test_any_bytes_give_clients_or_the_one_error(content, start):
    for parse in (parse_text, parse_plist):
        with suppress(NotARecording):
            parse(start + content)
