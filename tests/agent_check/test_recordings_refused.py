"""Any bytes at all: a parser reads them or raises NotARecording, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarbank_agent_check.gpu_readings import Added, GpuReading, NotARecording
from oarbank_agent_check.sources import cpu_recording_parse, ioreg_parse, nvml_parse, pdh_parse
from tests.agent_check.recorded import RECORDINGS, recorded

PARSERS = {"cpu": cpu_recording_parse, "agx": ioreg_parse, "nvml": nvml_parse, "pdh": pdh_parse}
MINE = sorted(path.name for path in RECORDINGS.iterdir() if path.name.split("_")[0] in PARSERS)
JSON_FILES = [name for name in MINE if name.endswith(".json")]
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def read(parser: Any, *documents: bytes) -> list[GpuReading]:
    """Read as the command does, and check what must always hold."""
    for document in documents:
        assert isinstance(parser.recognises(document), bool)
    try:
        readings = parser.readings(documents, [7, 42, 500, 4321, 7044])
    except NotARecording:
        return []
    for reading in readings:
        assert all(counter.value >= 0 for counter in reading.counters)
        assert all(_sane(added) for added in reading.added)
        assert all(unknown.reason for unknown in reading.unknown.values())
    return readings


def _sane(added: Added) -> bool:
    return added.busy_ns >= max(0, added.low_ns or 0)


@pytest.mark.parametrize("name", MINE)
def test_each_handed_recording_is_recognised_by_its_own_parser_alone(name):
    [document] = recorded(name)
    kind = name.split("_")[0]
    assert {other: parser.recognises(document) for other, parser in PARSERS.items()} == {
        other: other == kind for other in PARSERS
    }
    assert read(PARSERS[kind], document)


@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
@given(st.binary(max_size=200))
def test_any_bytes(parser, content):
    read(parser, content)


@pytest.mark.parametrize("parser", PARSERS.values(), ids=list(PARSERS))
@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"[" * 100_000, b'{"readings":' * 50_000, b"9" * 10_000, b'{"readings": []}', b'{"calls": {}}',
     b"null", b'{"readings": [1]}', b"\xff\xfe{}", b'{"readings": [{"t_s": NaN, "items": []}]}',
     b"<?xml version='1.0'?><!DOCTYPE plist [<!ENTITY a 'aa'>]><plist><string>&a;</string></plist>",
     b"<plist><dict/>" * 999, b"+-o \n" * 9],
    ids=lambda content: content[:12].decode("latin-1"),
)  # fmt: skip
def test_bytes_that_were_made_to_hurt(parser, content):
    read(parser, content)
    read(parser, content, content)


@pytest.mark.parametrize("name", JSON_FILES)
@given(data=st.data())
def test_a_recording_with_anything_in_the_place_of_anything(name, data):
    document = json.loads(recorded(name)[0])
    for _ in range(data.draw(st.integers(1, 3))):
        _replace_one(document, data)
    read(PARSERS[name.split("_")[0]], json.dumps(document).encode())


def _replace_one(place: Any, data: st.DataObject) -> None:
    """Walk down a random way and put something else there, or take it away."""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and data.draw(st.integers(0, 3)):
            place = place[key]
            continue
        if data.draw(st.booleans()):
            del place[key]
        else:
            place[key] = data.draw(ODD)
        return


@pytest.mark.parametrize("name", MINE)
@given(data=st.data())
def test_a_recording_with_bytes_cut_out_or_changed(name, data):
    [document] = recorded(name)
    start = data.draw(st.integers(0, len(document)))
    end = data.draw(st.integers(start, min(len(document), start + 40)))
    read(PARSERS[name.split("_")[0]], document[:start] + data.draw(st.binary(max_size=9)) + document[end:])
