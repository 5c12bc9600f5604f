"""An NVIDIA driver that follows a script, with the functions of pynvml that the reader uses."""

# ruff: noqa: N802  the names are the system's

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

NOT_SUPPORTED, NOT_FOUND, TOO_SMALL, NOT_LOADED, NO_FUNCTION = 3, 6, 7, 9, 13


class DriverError(Exception):
    """What pynvml raises; `value` is the driver's code."""

    def __init__(self, value: int) -> None:
        super().__init__(f"code {value}")
        self.value = value


@dataclass
class Gpu:
    """One GPU: its answers, each a value or an error code."""

    uuid: str = "GPU-1"
    compute: Any = ()
    graphics: Any = ()
    mps: Any = NOT_SUPPORTED
    newer: list[Any] = field(default_factory=list)
    """What the newer call answers, one after the other; empty: the driver doesn't know it."""
    older: list[Any] = field(default_factory=list)
    mig: Any = NOT_SUPPORTED
    accounting: Any = 0
    accounts: dict[int, Any] = field(default_factory=dict)
    model: int = 0


@dataclass
class ScriptedNvml:
    """The module: `init` is the code that nvmlInit raises, 0 for none."""

    gpus: list[Gpu]
    init: int = 0
    asked: list[tuple[str, int]] = field(default_factory=list)
    shut: int = 0
    NVMLError: Any = DriverError

    def nvmlInit(self) -> None:
        _give(self.init or None)

    def nvmlShutdown(self) -> None:
        self.shut += 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, gpu: Gpu) -> str:
        return gpu.uuid

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: Gpu) -> list[Any]:
        return _processes(gpu.compute)

    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu: Gpu) -> list[Any]:
        return _processes(gpu.graphics)

    def nvmlDeviceGetMPSComputeRunningProcesses(self, gpu: Gpu) -> list[Any]:
        return _processes(gpu.mps)

    def nvmlDeviceGetMigMode(self, gpu: Gpu) -> list[int]:
        return [_give(gpu.mig), 0]

    def nvmlDeviceGetCurrentDriverModel(self, gpu: Gpu) -> int:
        return gpu.model

    def nvmlDeviceGetAccountingMode(self, gpu: Gpu) -> int:
        return _give(gpu.accounting)

    def nvmlDeviceSetAccountingMode(self, gpu: Gpu, mode: int) -> None:
        raise AssertionError("the reader must never change a setting")

    def nvmlDeviceGetAccountingStats_v2(self, gpu: Gpu, pid: int) -> Any:
        found = gpu.accounts.get(pid, NOT_FOUND)
        return found if isinstance(found, SimpleNamespace) else _raise(found)

    def nvmlDeviceGetProcessesUtilizationInfo(self, gpu: Gpu, last_us: int) -> list[Any]:
        self.asked.append(("newer", last_us))
        return _rows(gpu.newer)

    def nvmlDeviceGetProcessUtilization(self, gpu: Gpu, last_us: int) -> list[Any]:
        self.asked.append(("older", last_us))
        return _rows(gpu.older)


def row(pid: int, stamp_us: int, percent: int) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, timeStamp=stamp_us, smUtil=percent, memUtil=0, encUtil=0, decUtil=0)


def account(samples: int, total: int) -> SimpleNamespace:
    return SimpleNamespace(sampleCount=samples, sumGpuUtil=total, isRunning=1)


def _give(answer: Any) -> Any:
    return _raise(answer) if isinstance(answer, int) and answer > 2 else answer


def _raise(code: int) -> Any:
    raise DriverError(code)


def _processes(answer: Any) -> list[Any]:
    return _raise(answer) if isinstance(answer, int) else [SimpleNamespace(pid=pid) for pid in answer]


def _rows(script: list[Any]) -> list[Any]:
    answer = script.pop(0) if script else NO_FUNCTION
    return _raise(answer) if isinstance(answer, int) else answer
