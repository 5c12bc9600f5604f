"""What systems say of their GPUs, and what a module's files are worth as a digest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oarbank_agent_check import host_facts_parse as parse
from oarbank_agent_check.certificate import Model
from oarbank_agent_check.host_facts import SAMPLE_BYTES, SAMPLES, host_facts, linux_gpus, work_facts
from oarbank_agent_check.jobs.host import this_host
from oarbank_agent_check.jobs.manifest import read_manifest
from oarbank_agent_check.jobs.module import Module
from tests import needs
from tests.conformkit import bundles

NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12\n"
NVRM_OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build  (root@host)\n"


@pytest.mark.parametrize(
    ("text", "version"),
    [(NVRM, "nvidia 550.54.15"), (NVRM_OPEN, "nvidia 570.86.10"), ("", None), ("NVRM version: gone", None)],
)
def test_driver_of_nvidia(text: str, version: str | None) -> None:
    assert parse.nvidia_driver(text) == version


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"SPDisplaysDataType": [{"sppci_model": "Apple M4", "sppci_cores": "10"}]}', ["Apple M4, 10 cores"]),
        ('{"SPDisplaysDataType": [{"_name": "AMD Radeon Pro"}, {"x": 1}, 7]}', ["AMD Radeon Pro"]),
        ('{"SPDisplaysDataType": 3}', []),
        ("", []),
        ("[" * 100_000, []),
    ],
)
def test_gpus_of_a_mac(text: str, names: list[str]) -> None:
    assert parse.mac_names(text) == names


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ('{"Name": "NVIDIA T4", "DriverVersion": "31.0.15"}', (["NVIDIA T4"], "31.0.15")),
        ('[{"Name": "A", "DriverVersion": "2"}, {"Name": "B", "DriverVersion": "1"}]', (["A", "B"], "1, 2")),
        ('[{"Name": null}, {"DriverVersion": "1"}]', ([], None)),
        ("not JSON", ([], None)),
    ],
)
def test_gpus_of_windows(text: str, gpus: tuple[list[str], str | None]) -> None:
    assert parse.windows_gpus(text) == gpus


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@needs.posix("a colon in a file's name")
def test_gpus_of_linux(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/version", NVRM)
    put(tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA RTX 4000\nIRQ: 5\n")
    cards = [("card0", "0x10de", "0x27b0", "nvidia"), ("card1", "0x1002", "0x744c", "amdgpu")]
    for card, vendor, device, driver in cards:
        folder = tmp_path / "sys/class/drm" / card / "device"
        put(folder / "vendor", vendor + "\n")
        put(folder / "device", device + "\n")
        put(folder / "uevent", f"PCI_ID=1\nDRIVER={driver}\n")
    put(tmp_path / "sys/class/drm/card1-DP-1/status", "connected\n")
    put(tmp_path / "sys/class/drm/card2/device/uevent", "DRIVER=vkms\n")

    assert linux_gpus(tmp_path) == (["NVIDIA RTX 4000", "amdgpu 1002:744c"], "nvidia 550.54.15")
    assert linux_gpus(tmp_path / "nothing") == ([], None)


def test_this_machine_can_be_told() -> None:
    here = host_facts(this_host())

    assert here.platform == this_host().platform
    assert here.os
    assert here.kit


@pytest.fixture
def module(tmp_path: Path) -> Module:
    found = read_manifest(str(bundles.build(tmp_path / "module", bundles.runner()))).module
    assert found is not None
    return found


def facts(module: Module, folder: Path, **payload: object):
    return work_facts(module, folder / "module", module.stages[0], payload, folder / "data")


def test_digest_follows_every_file_and_no_byproduct(module: Module, tmp_path: Path) -> None:
    before = facts(module, tmp_path)
    put(tmp_path / "module/__pycache__/runner.pyc", "x")
    put(tmp_path / "module/.venv/lib", "x")
    assert facts(module, tmp_path) == before

    put(tmp_path / "module/more.py", "")
    more = facts(module, tmp_path)
    os.rename(tmp_path / "module/more.py", tmp_path / "module/other.py")
    other = facts(module, tmp_path)
    put(tmp_path / "module/other.py", "x")
    changed = facts(module, tmp_path)

    assert len({one.digest for one in (before, more, other, changed)}) == 4


def test_model_is_what_the_payload_names(module: Module, tmp_path: Path) -> None:
    model = tmp_path / "data/models/tiny.gguf"
    put(model, "weights")
    first = facts(module, tmp_path, model="tiny.gguf").model
    put(model, "Weights")
    second = facts(module, tmp_path, model="tiny.gguf").model

    assert first is not None
    assert second is not None
    assert first.name == "tiny.gguf"
    assert None not in (first.digest, second.digest)
    assert first.digest != second.digest


@pytest.mark.parametrize("name", ["gone.gguf", "../module/runner.py", "/etc/hostname", "a\0b"])
def test_model_without_a_file_has_no_digest(module: Module, tmp_path: Path, name: str) -> None:
    assert facts(module, tmp_path, model=name).model == Model(name, None)


@pytest.mark.parametrize("payload", [{}, {"model": None}, {"model": ""}, {"model": 7}])
def test_payload_that_names_no_model(module: Module, tmp_path: Path, payload: dict[str, object]) -> None:
    assert facts(module, tmp_path, **payload).model is None


def test_large_model_is_sampled_at_both_ends_and_between(module: Module, tmp_path: Path) -> None:
    model = tmp_path / "data/models/large.gguf"
    model.parent.mkdir(parents=True)
    size = 2 * SAMPLES * SAMPLE_BYTES
    found = set()
    for at in (None, 0, size - 1, (size - SAMPLE_BYTES) // (SAMPLES - 1) + 5):
        with model.open("wb") as file:
            file.truncate(size)
            if at is not None:
                file.seek(at)
                file.write(b"x")
        known = facts(module, tmp_path, model="large.gguf").model
        assert known is not None
        found.add(known.digest)

    assert len(found) == 4
