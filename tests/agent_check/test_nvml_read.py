"""The NVML reader on a scripted driver: what it asks, and what each answer makes of a reading."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from oarbank_agent_check.gpu_readings import GpuReading, Recorder
from oarbank_agent_check.readings import ProcessKey
from oarbank_agent_check.sources import nvml_read
from oarbank_agent_check.sources.nvml_read import NvmlReader
from tests.agent_check.recorded import gained
from tests.agent_check.scripted_nvml import (
    NO_FUNCTION,
    NOT_FOUND,
    NOT_LOADED,
    NOT_SUPPORTED,
    TOO_SMALL,
    Gpu,
    ScriptedNvml,
    account,
    row,
)

S = 1_000_000
JOB, OTHER, IDLE = 7, 8, 9


class Machine:
    """A /proc with three processes, of which two hold an NVIDIA device, and a clock that goes on 2 s a look."""

    def __init__(self, root: Path, *gpus: Gpu, init: int = 0, platform: str = "linux", version: str = "Linux") -> None:
        self.root = root
        for pid in (JOB, OTHER, IDLE):
            folder = root / str(pid) / "fd"
            folder.mkdir(parents=True)
            try:
                os.symlink("/dev/null", folder / "0")
            except OSError:
                pytest.skip("needs symbolic links, which Windows gives to few users")
            if pid != IDLE:
                os.symlink("/dev/nvidia0", folder / "3")
        (root / "version").write_text(version)
        self.driver = ScriptedNvml(list(gpus), init=init)
        self.now = 0.0
        self.reader = NvmlReader(
            self.driver, proc=str(root), platform=platform, clock=lambda: self.now, lives=self.lives
        )

    def lives(self, pid: int) -> bool:
        return (self.root / str(pid)).exists()

    def read(self, *pids: int) -> GpuReading:
        self.now += 2.0
        return self.reader.read([ProcessKey(pid, 1.0) for pid in pids or (JOB, IDLE)])


@pytest.fixture
def machine(tmp_path):
    return lambda *gpus, **words: Machine(tmp_path, *gpus, **words)


def busy(reading: GpuReading) -> dict[int, int]:
    return {added.pid: added.busy_ns for added in reading.added}


def test_the_window_is_from_largest_stamp_to_largest_stamp(machine):
    rows = [[row(JOB, 10 * S, 90), row(OTHER, 11 * S, 5)], [row(JOB, 12 * S, 50), row(OTHER, 13 * S, 9)], NOT_FOUND]
    here = machine(Gpu(compute=[JOB, OTHER], newer=rows))
    readings = [here.read() for _ in range(3)]
    assert [busy(reading) for reading in readings] == [{}, {JOB: S * 1000}, {JOB: 0}]
    assert here.driver.asked == [("newer", 0), ("newer", 11 * S), ("newer", 13 * S)]
    assert all(not reading.unknown for reading in readings)


@pytest.mark.parametrize("code", [NO_FUNCTION, NOT_SUPPORTED, 2, 25, 999])
def test_the_older_call_stands_in_for_the_newer_and_is_then_kept(machine, code):
    gpu = Gpu(compute=[JOB], newer=[code, [row(JOB, 99 * S, 1)]], older=[[row(JOB, 10 * S, 1)], [row(JOB, 12 * S, 50)]])
    here = machine(gpu)
    here.read()
    assert busy(here.read()) == {JOB: S * 1000}
    assert here.driver.asked == [("newer", 0), ("older", 0), ("older", 10 * S)]


def test_a_list_that_grew_is_asked_for_again(machine):
    here = machine(Gpu(compute=[JOB], newer=[TOO_SMALL, [row(JOB, 10 * S, 1)], TOO_SMALL, [row(JOB, 12 * S, 50)]]))
    here.read()
    assert busy(here.read()) == {JOB: S * 1000}


def test_one_that_never_fits_is_unknown(machine):
    here = machine(Gpu(compute=[JOB], newer=[TOO_SMALL] * 9, older=[TOO_SMALL] * 9))
    assert "code 7" in here.read().unknown[JOB].reason


def test_success_as_an_error_means_no_rows(machine):
    here = machine(Gpu(compute=[JOB], newer=[[row(JOB, 10 * S, 1)], 0]))
    here.read()
    assert busy(here.read()) == {JOB: 0}


@pytest.mark.parametrize(
    ("gpu", "reason"),
    [
        (Gpu(compute=[JOB], mig=1), "MIG"),
        (Gpu(compute=[], mig=1), "MIG"),
        (Gpu(compute=[JOB], newer=[NOT_SUPPORTED], older=[NOT_SUPPORTED]), "before Maxwell"),
        (Gpu(compute=[JOB], newer=[4], older=[4]), "Run as root"),
        (Gpu(compute=[JOB], newer=[15], older=[15]), "code 15"),
        (Gpu(compute=[900], newer=[[row(900, S, 5)]]), "--pid=host"),
        (Gpu(compute=[900], accounting=1), "--pid=host"),
    ],
)
def test_what_cannot_be_told_is_unknown_with_a_way_out(machine, gpu, reason):
    reading = machine(gpu).read()
    assert reason in reading.unknown[JOB].reason
    assert IDLE not in reading.unknown  # it holds no NVIDIA device: a known zero
    assert not reading.added


def test_samples_of_the_host_beside_a_list_of_the_container_are_unknown(machine):
    here = machine(Gpu(compute=[JOB], newer=[[row(645400, S, 5)], [row(645400, 3 * S, 5)]]))
    here.read()
    assert "--pid=host" in here.read().unknown[JOB].reason


def test_capable_of_mig_but_whole_is_read(machine):
    assert machine(Gpu(compute=[JOB], mig=0, newer=[[row(JOB, S, 1)]])).read().unknown == {}


def test_contexts_are_the_union_of_all_lists(machine):
    rows = [[row(JOB, 10 * S, 1), row(OTHER, 10 * S, 1)], [row(JOB, 12 * S, 50), row(OTHER, 12 * S, 25)]]
    here = machine(Gpu(compute=[], graphics=[JOB], mps=[OTHER], newer=rows))
    here.read(JOB, OTHER)
    assert busy(here.read(JOB, OTHER)) == {JOB: S * 1000, OTHER: S * 500}


def test_two_gpus_add_up_and_one_unknown_makes_all_of_it_unknown(machine):
    both = [
        Gpu(uuid, compute=[JOB], newer=[[row(JOB, 10 * S, 1)], [row(JOB, 12 * S, 50)], [row(JOB, 14 * S, 50)]])
        for uuid in ("GPU-1", "GPU-2")
    ]
    here = machine(*both)
    here.read()
    assert busy(here.read()) == {JOB: 2 * S * 1000}
    both[1].mig = 1
    last = here.read()
    assert busy(last) == {}
    assert "MIG" in last.unknown[JOB].reason


def test_accounts_are_read_where_the_owner_switched_them_on(machine):
    gpu = Gpu(compute=[JOB], accounting=1, accounts={JOB: account(10, 50_000)})
    here = machine(gpu)
    here.read()
    gpu.accounts[JOB] = account(12, 65_000)
    [added] = here.read().added
    assert (added.busy_ns, added.low_ns, added.high_ns) == (1_500_000_000, 500_000_000, 2_500_000_000)
    assert here.driver.asked == []


@pytest.mark.parametrize(
    ("why", "start", "expected"),
    [
        ("it began after the reader", 1e12, {OTHER: 90_000_000_000}),
        ("it is older than the reader, and joined the job late", 1.0, {}),
    ],
)
def test_who_joins_the_job_brings_only_what_is_the_jobs(machine, why, start, expected):
    accounts = {JOB: account(1, 0), OTHER: account(100, 900_000)}
    here = machine(Gpu(compute=[JOB, OTHER], accounting=1, accounts=accounts))
    here.read()
    here.now += 2.0
    reading = here.reader.read([ProcessKey(JOB, 1.0), ProcessKey(OTHER, start)])
    assert busy(reading) == {JOB: 0} | expected, why
    assert (OTHER in reading.unknown) is not bool(expected)


def test_a_pid_given_out_again_begins_at_zero(machine):
    gpu = Gpu(compute=[JOB], accounting=1, accounts={JOB: account(10, 0)})
    here = machine(gpu)
    here.read(JOB)
    gpu.accounts[JOB] = account(12, 20_000)  # more than the earlier process had
    here.now += 2.0
    assert busy(here.reader.read([ProcessKey(JOB, 1e12)])) == {JOB: 2_000_000_000}


def test_a_change_of_accounting_begins_anew_and_says_so(machine):
    rows = [[row(JOB, 10 * S, 1)], [row(JOB, 12 * S, 50)]]
    gpu = Gpu(compute=[JOB], accounting=1, accounts={JOB: account(10, 50_000)}, newer=rows)
    here = machine(gpu)
    here.read()
    told = []
    for mode in (0, 0, 1, 1):
        gpu.accounting = mode
        reading = here.read()
        told.append((JOB in reading.unknown, JOB in busy(reading)))
    assert told == [(True, False), (False, True), (True, False), (False, True)]


@pytest.mark.parametrize("code", [NO_FUNCTION, NOT_SUPPORTED, 25])
def test_a_driver_without_the_newer_statistics_is_sampled(machine, code):
    gpu = Gpu(compute=[JOB], accounting=1, accounts={JOB: code}, newer=[[row(JOB, 10 * S, 1)], [row(JOB, 12 * S, 50)]])
    here = machine(gpu)
    here.read()
    assert busy(here.read()) == {JOB: S * 1000}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"init": NOT_LOADED}, "no NVIDIA driver is loaded here"),
        ({"init": 12}, "no NVIDIA driver is loaded here"),
        ({"init": 18}, "code 18"),
        ({"version": "Linux version 6.6 (Microsoft@Microsoft.com) WSL2"}, "WSL2"),
        ({"platform": "darwin"}, "macOS"),
        ({"platform": "win32"}, "pdh"),
    ],
)
def test_why_it_cannot_read_here(machine, words, reason):
    here = machine(Gpu(), **words)
    assert reason in here.reader.hindrance().reason
    if words.get("platform") is None:
        assert set(here.read().unknown) == {JOB, IDLE}


def test_a_driver_without_gpus_says_so(machine):
    assert "finds no GPU" in machine().reader.hindrance().reason


def test_on_windows_only_gpus_in_tcc_mode_are_its_own(machine):
    here = machine(Gpu("GPU-1", compute=[JOB], model=0), Gpu("GPU-2", compute=[OTHER], model=1), platform="win32")
    assert here.reader.hindrance() is None
    reading = here.read(JOB, OTHER)
    assert set(reading.unknown) == {OTHER}
    assert "TCC" in reading.unknown[OTHER].reason


def test_processes_that_ended_before_the_first_look_are_no_strangers(machine):
    rows = [[row(900, 9 * S, 50)], [row(JOB, 12 * S, 50)], [row(JOB, 14 * S, 50)]]
    here = machine(Gpu(compute=[JOB], newer=rows))
    assert [here.read().unknown for _ in range(3)] == [{}] * 3


def test_without_nvidia_ml_py_it_says_how_to_get_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(nvml_read.importlib, "import_module", missing)
    assert "pip install nvidia-ml-py" in NvmlReader(proc="/nowhere", platform="linux").hindrance().reason


def test_the_real_module_has_every_function_that_is_asked_for():
    if importlib.util.find_spec("pynvml") is None:
        pytest.fail("nvidia-ml-py must be installed: it is a dependency of this package")
    import pynvml  # only here: the package itself imports it late, too

    wanted = [name for name in dir(ScriptedNvml) if name.startswith("nvml")]
    assert [name for name in wanted if not hasattr(pynvml, name)] == []
    codes = {"NOT_SUPPORTED": 3, "NOT_FOUND": 6, "INSUFFICIENT_SIZE": 7, "DRIVER_NOT_LOADED": 9,
             "LIBRARY_NOT_FOUND": 12, "FUNCTION_NOT_FOUND": 13, "ARGUMENT_VERSION_MISMATCH": 25}  # fmt: skip
    assert {name: getattr(pynvml, f"NVML_ERROR_{name}") for name in codes} == codes


def test_closing_twice_shuts_the_driver_once(machine):
    here = machine(Gpu(compute=[JOB], newer=[[row(JOB, S, 1)]]))
    here.read()
    here.reader.close()
    here.reader.close()
    assert here.driver.shut == 1


@pytest.mark.parametrize(
    "gpu",
    [
        Gpu(compute=[JOB], newer=[[row(JOB, 10 * S, 1)], [row(JOB, 12 * S, 50)]]),
        Gpu(compute=[JOB], accounting=1, accounts={JOB: account(10, 0)}),
    ],
    ids=["calls", "accounts"],
)
def test_what_it_records_reads_as_it_was(machine, gpu):
    here = machine(gpu)
    assert isinstance(here.reader, Recorder)
    raws = []
    for _ in range(2):
        here.now += 2.0
        raws.append(here.reader.raw([ProcessKey(JOB, 1.0)]))
        gpu.accounts = {JOB: account(12, 10_000)}
    files = here.reader.recording(raws)
    assert list(files) == ["nvml_0.json"]
    assert gained(list(files.values()), JOB) == {JOB: S * 1000}
