"""ROCm: open queues are unknown compute time, copies are known, and only listed is a known zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources.kfd_parse import QUEUES, judge, readings
from oarbank_agent_check.sources.kfd_read import FIRST_NAMESPACE, KfdReader
from oarbank_agent_check.sources.recording_parse import gains_of

A = ProcessKey(4, 100.0)


@pytest.mark.parametrize(
    ("files", "copies_ns", "says"),
    [
        ({}, [], None),
        ({"pasid": "1", "vram_9": "5", "stats_9/cu_occupancy": "228"}, [], None),
        ({"sdma_9": "120\n"}, [120_000], None),
        ({"sdma_9": "120", "sdma_10": "5", "queues/0/type": "0"}, [120_000, 5_000], "ROCm queues are open"),
        ({"queues/3/gpuid": "9"}, [], "ROCm queues are open"),
        ({"queues/": ""}, [], None),
        ({"sdma_9": "many"}, [], "is no number"),
    ],
)
def test_what_the_files_of_a_process_say(files, copies_ns, says):
    counters, fault = judge(4, files)
    assert [counter.value for counter in counters] == copies_ns
    assert (fault is None) == (says is None)
    assert says is None or says in fault.reason


def recording(*rows: dict) -> bytes:
    return json.dumps({"readings": [{"t_s": 2 * n, "sysfs": row} for n, row in enumerate(rows)]}).encode()


def path(name: str) -> str:
    return f"/sys/class/kfd/kfd/proc/4/{name}"


def test_a_recording_without_queues_is_known_and_one_that_had_them_is_not():
    idle, busy = {path("sdma_9"): "5"}, {path("sdma_9"): "5", path("queues/0/type"): "0"}
    assert gains_of(readings([recording(idle, {path("sdma_9"): "7"})], [4]), [4])[4].busy == 2000
    for rows in ((idle, busy), (busy, idle)):
        assert gains_of(readings([recording(*rows)], [4]), [4])[4].busy == QUEUES
    absent = gains_of(readings([recording(idle, idle)], [5]), [5])[5].busy
    assert "says nothing of pid 5" in absent.reason


def test_graphics_of_the_same_process_add_to_it():
    text = "drm-driver: amdgpu\ndrm-pdev: 0\ndrm-client-id: 1\ndrm-engine-gfx: {} ns\n"
    rows = [{"t_s": n, "sysfs": {path("pasid"): "1"}, "fdinfo": text.format(10 + 5 * n)} for n in range(2)]
    document = json.dumps({"readings": rows}).encode()
    assert gains_of(readings([document], [4]), [4])[4].busy == 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "class/kfd/kfd/proc"
    made.mkdir(parents=True)
    return made


def test_reading_a_made_sys(tmp_path, folder):
    reader = KfdReader(str(tmp_path), namespace=FIRST_NAMESPACE)
    assert reader.hindrance() is None
    assert reader.read([A]).counters == ()
    (folder / "4/queues/0").mkdir(parents=True)
    (folder / "4/sdma_51545").write_text("120000\n")
    (folder / "4/vram_51545").write_text("9\n")
    found = reader.read([A])
    assert [(c.engine, c.value) for c in found.counters] == [("sdma", 120_000_000)]
    assert found.unknown == {4: QUEUES}
    raws = [reader.raw([A]), reader.raw([A])]
    files = reader.recording(raws)
    assert gains_of(readings([files["kfd.json"]], [4]), [4])[4].busy == QUEUES
    assert "vram" not in files["kfd.json"].decode()
    reader.close()


def test_nothing_to_record_is_no_file(tmp_path, folder):
    reader = KfdReader(str(tmp_path), namespace=FIRST_NAMESPACE)
    assert reader.recording([reader.raw([A])]) == {}


def test_hindrances(tmp_path, folder):
    assert "no ROCm device" in KfdReader(str(tmp_path / "none")).hindrance().reason
    assert "container" in KfdReader(str(tmp_path), namespace="pid:[4026532000]").hindrance().reason


def test_files_that_are_refused_are_unknown(tmp_path, folder, monkeypatch):
    (folder / "4").mkdir()
    (folder / "4/sdma_1").write_text("1")

    def refuse(*_: object, **__: object):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    reader = KfdReader(str(tmp_path), namespace=FIRST_NAMESPACE)
    found = reader.read([A])
    raw = reader.raw([A])
    monkeypatch.undo()
    assert isinstance(found.unknown[4], Unknown)
    assert "Run as its owner or as root" in found.unknown[4].reason
    assert raw[1] == {}
