"""Reading /proc and /sys: only the job's own descriptors, every error a reason, and no device woken for nothing."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from oarbank_agent_check.counters import GainBook
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources import drm_read
from oarbank_agent_check.sources.drm_parse import readings
from oarbank_agent_check.sources.drm_read import DrmReader
from oarbank_agent_check.sources.recording_parse import gains_of
from tests import needs
from tests.agent_check.made_proc import MadeProc, device

pytestmark = needs.posix("device numbers")
A, B = ProcessKey(4, 100.0), ProcessKey(5, 101.0)
AMD = (
    "drm-driver:\tamdgpu\ndrm-pdev:\t0000:08:00.0\ndrm-client-id:\t{id}\n"
    "drm-memory-vram:\t9 KiB\ndrm-engine-gfx:\t{ns} ns\n"
)
XE = (
    "drm-driver:\txe\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t3\n"
    "drm-cycles-rcs:\t{cycles}\ndrm-total-cycles-rcs:\t{total}\n"
)


def amd(ns: int, client: int = 1) -> str:
    return AMD.format(id=client, ns=ns)


@pytest.fixture
def made(tmp_path):
    return MadeProc(tmp_path)


def reader_of(made: MadeProc) -> DrmReader:
    return DrmReader(
        str(made.proc),
        str(made.sys),
        device_of=made.device_of,
        lives=made.living.__contains__,
        ran_ns=made.ran.get,
    )


def gain(book: GainBook, reader: DrmReader, *members: ProcessKey) -> int | None:
    busy = book.add(reader.read(members), members).job.busy
    return None if isinstance(busy, Unknown) else busy


def test_only_gpu_descriptors_are_read_and_one_client_counts_once(made):
    made.holds(4, 0, None)
    made.holds(4, 1, device(1, 3), "never read: drm-driver: amdgpu\n")
    first, second = made.holds(4, 10, text=amd(5)), made.holds(4, 11, text=amd(5))
    reader, book = reader_of(made), GainBook()
    assert gain(book, reader, A) == 0
    for file in (first, second):
        file.write_text(amd(12))
    assert gain(book, reader, A) == 7
    assert {counter.client for counter in reader.read([A]).counters} == {"0000:08:00.0:1"}


def test_a_process_that_holds_nothing_is_in_no_list(made):
    made.holds(4, 0, None)
    found = reader_of(made).read([A])
    assert (found.counters, found.unknown, found.gone, found.elsewhere) == ((), {}, frozenset(), {})


def test_other_processes_are_not_looked_at(made):
    made.holds(4, 3, text=amd(5))
    made.holds(99, 3, text=amd(5))
    asked: list[str] = []
    reader = reader_of(made)
    real = os.listdir

    def listdir(path):
        asked.append(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path)
        return real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "listdir", listdir)
        reader.read([A])
    assert asked
    assert not any("/99" in path for path in asked)


def test_new_descriptors_are_noticed_and_sleepers_are_not_searched_again(made):
    file = made.holds(4, 3, text=amd(5))
    made.ran[4] = 1000
    reader, book = reader_of(made), GainBook()
    gain(book, reader, A)
    searched = len(made.searched)
    file.write_text(amd(9))
    assert gain(book, reader, A) == 4  # its counters move on while it sleeps
    assert len(made.searched) == searched
    made.holds(4, 7, text=amd(100, client=2))
    made.ran[4] = 1001
    assert gain(book, reader, A) == 100


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
@pytest.mark.parametrize("place", ["fd", "fdinfo/3"])
def test_another_users_process_is_unknown(made, monkeypatch, number, place):
    made.holds(4, 3, text=amd(5))
    made.holds(5, 3, text=amd(5, client=2))
    _refuse(monkeypatch, f"/4/{place}", number)
    found = reader_of(made).read([A, B])
    assert "another user's process" in found.unknown[4].reason
    assert {counter.pid for counter in found.counters} == {5}


def test_a_device_that_may_not_be_asked_for_is_unknown(made):
    made.holds(4, 3, text=amd(5))

    def refuse(name: str, directory: int) -> int:
        raise PermissionError(errno.EACCES, "no")

    made.device_of = refuse
    assert 4 in reader_of(made).read([A]).unknown


def test_a_process_that_ended_is_gone_and_a_hidden_one_is_unknown(made):
    assert reader_of(made).read([A]).gone == {4}
    made.living.add(4)  # hidepid: it lives, and its directory is not there
    found = reader_of(made).read([A])
    assert found.gone == frozenset()
    assert "hidepid" in found.unknown[4].reason


def test_a_descriptor_that_closes_in_between_is_no_error(made):
    made.holds(4, 3, text=amd(5)).unlink()
    made.holds(4, 5, text=amd(6, client=2))
    found = reader_of(made).read([A])
    assert [counter.value for counter in found.counters] == [6]
    assert found.unknown == {}


def test_when_the_first_thread_has_ended_another_shows_the_descriptors(made):
    made.process(4)
    made.holds(4, 3, text=amd(5), thread=40)
    (made.proc / "4/task/39").mkdir()  # one that ended between the listing and now
    reader, book = reader_of(made), GainBook()
    gain(book, reader, A)
    (made.proc / "4/task/40/fdinfo/3").write_text(amd(25))
    assert gain(book, reader, A) == 20


@pytest.mark.parametrize(
    ("device", "elsewhere", "says"),
    [
        (device(195, 0), "nvml", None),
        (device(507, 0), "nvml", None),  # nvidia-uvm and kfd get their numbers when they are loaded
        (device(508, 0), "kfd", None),
        (device(10, 61), None, "WSL"),
        (device(10, 183), None, None),
    ],
)
def test_devices_of_other_sources(made, device, elsewhere, says):
    made.holds(4, 3, device)
    found = reader_of(made).read([A])
    assert found.elsewhere == ({4: {elsewhere}} if elsewhere else {})
    assert (4 in found.unknown) == (says is not None)
    assert says is None or says in found.unknown[4].reason


def test_a_driver_that_is_loaded_later_is_learnt(made):
    reader = reader_of(made)
    assert reader.read([]).elsewhere == {}
    (made.proc / "devices").write_text("Character devices:\n511 nvidia-uvm\n")
    made.holds(4, 3, device(511, 0))
    assert reader.read([A]).elsewhere == {4: {"nvml"}}


def test_nvidias_display_nodes_are_known_by_their_driver(made):
    made.driver("nvidia")
    made.holds(4, 3)
    found = reader_of(made).read([A])
    assert (found.elsewhere, found.unknown) == ({4: {"nvml"}}, {})


# ---- sleeping devices ----------------------------------------------------------------------------
def test_a_sleeping_device_is_not_woken_and_its_processes_did_nothing(made, monkeypatch):
    made.driver("xe", runtime_status="suspended", runtime_active_time=5000)
    made.holds(4, 3, text=XE.format(cycles=5, total=10))
    read = _opened(monkeypatch)
    reader, book = reader_of(made), GainBook()
    assert [gain(book, reader, A) for _ in range(3)] == [0, 0, 0]
    assert reader.read([A]).asleep == {4}
    assert not any("fdinfo/3" in path for path in read)


def test_what_was_asleep_from_the_start_has_its_baseline_when_it_wakes(made):
    power = made.driver("xe", runtime_status="suspended", runtime_active_time=5000)
    file = made.holds(4, 3, text=XE.format(cycles=10**9, total=10**10))
    reader, book = reader_of(made), GainBook()
    assert gain(book, reader, A) == 0
    (power / "runtime_status").write_text("active\n")
    assert gain(book, reader, A) is None
    file.write_text(XE.format(cycles=10**9, total=10**10 + 10**6))
    assert gain(book, reader, A) == 0


def test_a_device_that_worked_and_fell_asleep_is_worth_waking_but_not_for_our_own_reading(made):
    power = made.driver("xe", runtime_status="active", runtime_active_time=5000, autosuspend_delay_ms=1000)
    made.holds(4, 3, text=XE.format(cycles=5, total=10))
    reader = reader_of(made)
    assert reader.read([A]).asleep == frozenset()
    (power / "runtime_status").write_text("suspended\n")
    (power / "runtime_active_time").write_text("6100\n")  # no longer than our reading kept it awake
    assert reader.read([A]).asleep == {4}
    (power / "runtime_active_time").write_text("7000\n")  # somebody used it since
    assert reader.read([A]).asleep == frozenset()


def test_other_drivers_sleep_through_a_reading(made):
    made.driver("amdgpu", runtime_status="suspended")
    made.holds(4, 3, text=amd(5))
    assert len(reader_of(made).read([A]).counters) == 1


# ---- hindrances and recordings -------------------------------------------------------------------
def test_hindrances_say_what_is_missing(made):
    assert reader_of(made).hindrance() is None
    (made.sys / "class/drm/card0").rmdir()
    assert "no GPU has a kernel driver here" in reader_of(made).hindrance().reason
    (made.sys / "class/accel/accel0").mkdir(parents=True)
    assert reader_of(made).hindrance() is None
    (made.proc / "self/fdinfo").rmdir()
    assert "needs Linux" in reader_of(made).hindrance().reason


def test_what_is_recorded_says_the_same_again(made, monkeypatch):
    file = made.holds(4, 3, text=amd(5))
    made.holds(5, 0, None)
    made.holds(6, 3, device(195, 0))
    made.driver("amdgpu")
    made.process(7)
    members = [ProcessKey(pid, 1.0) for pid in (4, 5, 6, 7, 8)]
    _refuse(monkeypatch, "/7/fd", errno.EACCES)
    reader = reader_of(made)
    raws = [reader.raw(members)]
    file.write_text(amd(65))
    raws.append(reader.raw(members))
    (name, document) = next(iter(reader.recording(raws).items()))
    gains = gains_of(readings([document], range(4, 9)), range(4, 9))
    assert name == "drm.fdinfo"
    assert (gains[4].busy, gains[5].busy, gains[8].busy) == (60, 0, 0)
    assert "nvml" in gains[6].busy.reason
    assert "another user's process" in gains[7].busy.reason


def test_nothing_held_is_nothing_recorded(made):
    made.holds(5, 0, None)
    reader = reader_of(made)
    assert reader.recording([reader.raw([B])]) == {}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux' /proc")
def test_the_real_proc_shows_our_own_devices(tmp_path):
    with open("/dev/null", encoding="utf-8") as null:
        directory = os.open("/proc/self/fd", os.O_RDONLY)
        try:
            assert drm_read.device_number(str(null.fileno()), directory) == device(1, 3)
        finally:
            os.close(directory)
    me = ProcessKey(os.getpid(), 1.0)
    found = DrmReader().read([me])
    assert (found.unknown, found.gone) == ({}, frozenset())
    assert drm_read.lives(me.pid)
    assert drm_read.ran_ns(me.pid) > 0
    assert not drm_read.lives(2**22 + 1)
    assert drm_read.ran_ns(2**22 + 1) is None


def _refuse(monkeypatch, end: str, number: int) -> None:
    real = os.open

    def opener(path, *arguments, **more):
        if str(path).endswith(end):
            raise OSError(number, os.strerror(number))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", opener)


def _opened(monkeypatch) -> list[str]:
    paths: list[str] = []
    real = os.open

    def opener(path, *arguments, **more):
        paths.append(str(path))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", opener)
    return paths
