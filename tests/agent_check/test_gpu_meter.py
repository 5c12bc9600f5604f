"""The meter over several readers, and the choice of readers: what nobody can tell is never a zero."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint

import pytest

from oarbank_agent_check import gpu_meter
from oarbank_agent_check.cli import main
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.gpu_readings import Added, Counter, GpuReading
from oarbank_agent_check.readings import NS_PER_S, ProcessKey, Unknown
from oarbank_agent_check.sources import gpu
from oarbank_sdk.contracts.judge import judge

A, B = ProcessKey(7, 1000.0), ProcessKey(8, 1000.5)
WHY = Unknown("it hides. Ask it.")


class Tree:
    """Members as a test sets them."""

    def __init__(self, *members: ProcessKey) -> None:
        self.members, self.hidden = members, {}

    def refresh(self) -> tuple[ProcessKey, ...]:
        return self.members

    def unreadable(self) -> dict[int, Unknown]:
        return dict(self.hidden)


class Scripted:
    """A reader that hands over what a test puts into `reading`."""

    reads = "what it is told"

    def __init__(self, name: str, hindrance: Unknown | None = None) -> None:
        self.name, self.why, self.closed = name, hindrance, 0
        self.reading: GpuReading | Exception = GpuReading(0.0)

    def hindrance(self) -> Unknown | None:
        return self.why

    def read(self, members) -> GpuReading:
        if isinstance(self.reading, Exception):
            raise self.reading
        return self.reading

    def close(self) -> None:
        self.closed += 1

    def counts(self, **values: int) -> None:
        counters = tuple(Counter(int(key[1:]), f"{self.name}{key}", "e", value) for key, value in values.items())
        self.reading = GpuReading(0.0, counters)


class Clock:
    """Each look at the clock is a second later."""

    def __init__(self) -> None:
        self.now = 5.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now

    def time(self) -> float:
        return self.now + 1000.0


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(gpu_meter, "time", made)
    return made


def started(tree: Tree, *readers: Scripted) -> GpuMeter:
    meter = GpuMeter(tree, readers)
    meter.start()
    return meter


def document(sample) -> dict:
    verdict = judge("gpu-sample-1", json.dumps(sample.to_json()))
    assert verdict.valid, verdict.faults
    return sample.to_json()


def test_one_reader_gives_its_name_and_the_gains_of_each_process():
    reader = Scripted("drm-fdinfo")
    reader.counts(p7=NS_PER_S, p8=5)
    meter = started(Tree(A, B), reader)
    reader.counts(p7=3 * NS_PER_S // 2, p8=5)
    found = document(meter.sample())
    assert (found["source"], found["pids"], found["detail"]) == ("drm-fdinfo", [7, 8], "drm-fdinfo")
    assert (found["busy_s"], found["share"], found["window_s"]) == (0.5, 0.5, 1.0)
    assert [process["busy_s"] for process in found["processes"]] == [0.5, 0.0]
    assert "low" not in found
    meter.stop()
    meter.stop()
    assert reader.closed == 1


def test_several_readers_add_up():
    amd, nvidia = Scripted("drm-fdinfo"), Scripted("nvml")
    meter = started(Tree(A), amd, nvidia)
    amd.counts(p7=NS_PER_S // 4)
    nvidia.reading = GpuReading(0.0, added=(Added(7, NS_PER_S // 2, NS_PER_S // 4, NS_PER_S),))
    found = document(meter.sample())
    assert (found["source"], found["detail"]) == ("gpu", "drm-fdinfo, nvml")
    assert (found["share"], found["low"], found["high"]) == (0.75, 0.5, 1.25)


def test_a_reader_that_cannot_tell_makes_its_process_unknown_whatever_others_read():
    amd, nvidia = Scripted("drm-fdinfo"), Scripted("nvml")
    meter = started(Tree(A, B), amd, nvidia)
    amd.counts(p7=5)
    nvidia.reading = GpuReading(0.0, unknown={8: WHY})
    found = document(meter.sample())
    assert (found["share"], found["unknown"]) == (None, [{"pid": 8, "reason": WHY.reason}])
    assert [process["busy_s"] for process in found["processes"]] == [5 / NS_PER_S, None]


def test_who_holds_nothing_is_a_known_zero_where_one_reader_can_read():
    meter = started(Tree(A), Scripted("drm-fdinfo"), Scripted("nvml", WHY))
    found = document(meter.sample())
    assert (found["share"], found["source"], found["unknown"]) == (0.0, "drm-fdinfo", [])


def test_where_no_reader_can_read_all_reasons_are_given():
    meter = started(Tree(A), Scripted("drm-fdinfo", WHY), Scripted("nvml", Unknown("no driver.")))
    found = document(meter.sample())
    assert found["share"] is None
    assert found["unknown"][0] == {"pid": None, "reason": "drm-fdinfo: it hides. Ask it; nvml: no driver."}
    assert meter.hindrance().reason == "drm-fdinfo: it hides. Ask it; nvml: no driver."
    assert document(started(Tree(A)).sample())["share"] is None


def test_a_device_of_a_source_that_cannot_read_is_unknown_with_its_reason():
    amd, nvidia = Scripted("drm-fdinfo"), Scripted("nvml", Unknown("nvidia-ml-py is not installed."))
    meter = started(Tree(A), amd, nvidia)
    amd.reading = GpuReading(0.0, elsewhere={7: frozenset({"nvml"})})
    (why,) = document(meter.sample())["unknown"]
    assert why["reason"] == "it holds a device whose time nvml tells; nvidia-ml-py is not installed."
    nvidia.why = None
    meter = started(Tree(A), amd, nvidia)
    assert document(meter.sample())["share"] == 0.0


def test_a_reader_that_breaks_is_unknown_and_not_zero():
    reader = Scripted("mine")
    meter = started(Tree(A), reader)
    reader.reading = RuntimeError("boom")
    (why,) = document(meter.sample())["unknown"]
    assert why == {"pid": 7, "reason": "the reader mine broke (RuntimeError: boom). Report it."}


def test_a_reader_that_breaks_when_asked_is_hindered():
    reader = Scripted("mine")
    reader.hindrance = lambda: 1 / 0
    assert "mine broke (ZeroDivisionError" in GpuMeter(Tree(A), [reader]).hindrance().reason


def test_members_that_end_or_join_in_between_belong_to_the_sample():
    tree, reader = Tree(A), Scripted("drm-fdinfo")
    meter = started(tree, reader)
    reader.counts(p7=50)
    meter.look()
    tree.members = (B,)
    reader.counts(p8=0)
    found = document(meter.sample())
    assert (found["pids"], found["busy_s"]) == ([7, 8], 50 / NS_PER_S)
    assert document(meter.sample())["pids"] == [8]


def test_looks_in_between_change_nothing_in_the_sum():
    reader = Scripted("drm-fdinfo")
    meter = started(Tree(A), reader)
    for value in (10, 30, 35):
        reader.counts(p7=value)
        meter.look()
    reader.reading = GpuReading(0.0)
    assert document(meter.sample())["busy_s"] == 35 / NS_PER_S


def test_a_member_that_cannot_be_identified_is_unknown():
    tree = Tree(A)
    meter = started(tree, Scripted("drm-fdinfo"))
    tree.hidden = {9: WHY}
    assert document(meter.sample())["unknown"] == [{"pid": 9, "reason": WHY.reason}]


def test_wrong_order_and_no_time_are_errors(clock):
    meter = GpuMeter(Tree(A), [Scripted("drm-fdinfo")])
    for call in (meter.sample, meter.look):
        with pytest.raises(RuntimeError, match="start"):
            call()
    meter.start()
    with pytest.raises(RuntimeError, match="works once"):
        meter.start()
    clock.monotonic = lambda: 0.0
    with pytest.raises(ValueError, match="no time has passed"):
        meter.sample()


# ---- which readers -------------------------------------------------------------------------------
class Own:
    """A reader as a package of somebody else brings it."""

    name = "own"
    reads = "nothing"

    def hindrance(self) -> None:
        return None

    def read(self, members) -> GpuReading:
        return GpuReading(0.0)

    def close(self) -> None:
        """Nothing was opened."""


class Broken:
    def __init__(self) -> None:
        raise RuntimeError("no licence")


@pytest.fixture
def points(monkeypatch):
    found: list[EntryPoint] = []
    monkeypatch.setattr(gpu, "entry_points", lambda group: found if group == gpu.ENTRY_POINTS else [])
    monkeypatch.delenv(gpu.VARIABLE, raising=False)
    return found


@pytest.mark.parametrize(
    ("platform", "names"),
    [
        ("linux", ["drm-fdinfo", "kfd", "nvml"]),
        ("darwin", ["ioreg"]),
        ("win32", ["pdh", "nvml"]),
        ("plan9", []),
    ],
)
def test_all_readers_of_a_system(platform, names, points, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    assert [reader.name for reader in gpu.readers()] == names


def test_readers_of_other_packages_come_too_and_a_broken_one_says_so(points):
    points += [EntryPoint("own", f"{__name__}:Own", gpu.ENTRY_POINTS)]
    points += [EntryPoint("bad", f"{__name__}:Broken", gpu.ENTRY_POINTS)]
    own, bad = gpu.readers()[-2:]
    assert (own.name, own.hindrance()) == ("own", None)
    assert "no licence" in bad.hindrance().reason
    assert 7 in bad.read([A]).unknown
    bad.close()
    assert [reader.name for reader in gpu.readers("own")] == ["own"]


@pytest.mark.parametrize("name", list(gpu.OWN))
def test_each_name_gives_that_reader_alone(name, points):
    assert [reader.name for reader in gpu.readers(name)] == [name]


def test_a_spec_may_name_a_class_and_comes_from_the_environment(points, monkeypatch):
    assert [reader.name for reader in gpu.readers(f"{__name__}:Own")] == ["own"]
    monkeypatch.setenv(gpu.VARIABLE, "kfd")
    assert [reader.name for reader in gpu.readers()] == ["kfd"]
    monkeypatch.setenv(gpu.VARIABLE, "")
    assert [reader.name for reader in gpu.readers()][:1] != ["kfd"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("cuda", "must be drm-fdinfo, kfd, nvml, ioreg, pdh, or module:Class; found 'cuda'"),
        ("no_such_module:Reader", "ModuleNotFoundError"),
        ("json:Nothing", "AttributeError"),
        (":", "must be module:Class that can be loaded"),
        (f"{__name__}:Broken", "RuntimeError: no licence"),
        ("collections:Counter", "it makes no GPU reader, for it has no 'name'"),
    ],
)
def test_a_spec_that_names_nothing_is_one_clear_line(spec, says, points, monkeypatch, capsys):
    with pytest.raises(gpu.UnknownReader) as caught:
        gpu.readers(spec)
    assert says in str(caught.value)
    monkeypatch.setenv(gpu.VARIABLE, spec)
    assert main(["sample", "--measure", "gpu", "--pid", "1", "--interval", "0.05"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_own_reader_whose_system_library_is_missing_stays_with_its_hindrance(points, monkeypatch):
    monkeypatch.setitem(gpu.OWN, "kfd", "no_such_module:KfdReader")
    (reader,) = gpu.readers("kfd")
    assert "can't be loaded (ModuleNotFoundError" in reader.hindrance().reason
