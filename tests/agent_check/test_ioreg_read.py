"""The IORegistry reader on a scripted registry, and the program ioreg as its fallback."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from oarbank_agent_check.gpu_readings import Recorder
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.ioreg_read import TRIES, IoregReader
from tests.agent_check.recorded import RECORDINGS, gained
from tests.agent_check.scripted_mac import Mac

NO_PROGRAM = ("/nonexistent/ioreg",)
PRINTS = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"


def client(entry: int, pid: Any, *times: Any, **properties: Any) -> tuple[int, dict[str, Any]]:
    usage = {"AppUsage": [{"accumulatedGPUTime": time, "API": "Metal"} for time in times]} if times else {}
    return entry, {"IOUserClientCreator": f"pid {pid}, name", **usage, **properties}


def reader(mac: Mac, command: tuple[str, ...] = NO_PROGRAM) -> IoregReader:
    return IoregReader(mac, mac, platform="darwin", clock=lambda: 1.0, command=command)


def read(source: IoregReader, *pids: int):
    return source.read([ProcessKey(pid, 1.0) for pid in pids])


def test_the_clients_of_all_accelerators_are_found_and_everything_is_let_go():
    mac = Mac([client(0x10, 7, 5, 6), client(0x11, 8, 9)], [], [client(0x12, 7, 1 << 60), client(0x13, 7)])
    source = reader(mac)
    assert source.hindrance() is None
    reading = read(source, 7)
    assert [(c.pid, c.client, c.value) for c in reading.counters] == [
        (7, "0x10", 11),
        (7, "0x12", 1 << 60),
        (7, "0x13", 0),
    ]
    assert reading.unknown == {}
    source.close()
    source.close()
    assert mac.held() == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"AppUsage": [{"API": "Metal"}]},
        {"AppUsage": ["text"]},
        {"AppUsage": "text"},
        {"AppUsage": [{"accumulatedGPUTime": "text"}]},
        {"AppUsage": [{"accumulatedGPUTime": 1 << 63}]},
        {"AppUsage": [{"accumulatedGPUTime": -1}]},
        {"accumulatedGPUTime": 1.5},
    ],
)
def test_a_form_that_is_not_known_is_unknown(properties):
    mac = Mac([client(0x10, 7, **properties), client(0x11, 8, 9)])
    source = reader(mac)
    reading = read(source, 7, 8)
    assert set(reading.unknown) == {7}
    assert [c.pid for c in reading.counters] == [8]
    source.close()
    assert mac.held() == 0


@pytest.mark.parametrize(
    "other",
    [client(0, 7, 5), (0x10, {"AppUsage": []}), (0x10, {"IOUserClientCreator": 5}), client(0x10, 0, 5),
     (0x10, {"IOUserClientCreator": "pid 7, " + "x" * 2000})],
    ids=["closed", "nobody", "no text", "pid 0", "endless name"],
)  # fmt: skip
def test_what_is_nobodys_client_is_left_out(other):
    reading = read(reader(Mac([other])), 7)
    assert (reading.counters, reading.unknown) == ((), {})


@pytest.mark.parametrize(("changes", "known"), [(0, True), (TRIES - 1, True), (TRIES, False)])
def test_a_registry_that_changes_is_walked_again(changes, known):
    mac = Mac([client(0x10, 7, 5)], changes=changes)
    source = reader(mac)
    reading = read(source, 7)
    assert (reading.unknown == {}) is known
    assert len(reading.counters) == known
    source.close()
    assert mac.held() == 0


def test_no_accelerator_is_no_source():
    source = reader(Mac())
    why = source.hindrance()
    assert why is not None
    assert "no GPU accelerator" in why.reason
    assert read(source, 7).unknown == {7: why}


@pytest.mark.parametrize("without", ["frameworks", "walk"])
def test_where_the_walk_fails_ioreg_answers(without):
    command = (sys.executable, "-c", PRINTS, str(RECORDINGS / "agx_plist.r1.plist"))
    if without == "frameworks":
        source = IoregReader(platform="darwin", clock=lambda: 1.0, command=command)
        source._frameworks = (object(), object())  # without a single function
    else:
        source = reader(Mac([client(0x10, 7, 5)], fails="matching"), command)
    assert [(c.pid, c.value) for c in read(source, 1234).counters] == [(1234, 7000)]


@pytest.mark.parametrize(
    "command",
    [NO_PROGRAM, (sys.executable, "-c", "print('no plist')"), (sys.executable, "-c", "raise SystemExit(3)")],
)
def test_where_both_fail_it_is_unknown(command):
    source = reader(Mac(fails="matching"), command)
    assert isinstance(read(source, 7).unknown[7], Unknown)
    why = source.hindrance()
    assert why is not None
    assert "IOKit answered 0xe00002bc" in why.reason


@pytest.mark.parametrize(("platform", "word"), [("linux", "Linux"), ("win32", "Windows"), ("aix", "aix")])
def test_elsewhere_it_says_where_it_belongs(platform, word):
    why = IoregReader(platform=platform).hindrance()
    assert why is not None
    assert f"this is {word}: macOS only" in why.reason


def test_what_it_records_reads_as_it_was_without_names():
    mac = Mac([client(0x10, 7, 5), client(0x11, 8, 1)])
    source = reader(mac)
    assert isinstance(source, Recorder)
    first = source.raw([ProcessKey(7, 1.0)])
    mac.accelerators = [[client(0x10, 7, 9)]]
    files = source.recording([first, source.raw([ProcessKey(7, 1.0)])])
    assert list(files) == ["ioreg.r1.plist", "ioreg.r2.plist"]
    assert gained(list(files.values()), 7) == {7: 4}
    assert b"name" not in files["ioreg.r1.plist"]
