"""Asks NVIDIA's driver through NVML which processes use its GPUs; the source's one file that touches the machine.

It decides nothing: every answer goes to `nvml_parse`, and what the driver can't tell is unknown with a reason. It
never changes a setting: accounting mode is used where the owner switched it on. On Windows NVML tells no time of
processes, so only GPUs in TCC mode are looked at, which Windows' own counters don't show.

Never run: NVIDIA GPUs; tested against a scripted NVML.
Never run: Windows; tested against a scripted NVML.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from oarbank_agent_check.gpu_readings import GpuReading
from oarbank_agent_check.process_table import START_RESOLUTION_S
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.sources import nvml_accounting
from oarbank_agent_check.sources.drm_read import lives
from oarbank_agent_check.sources.nvml_accounting import Account, Mark
from oarbank_agent_check.sources.nvml_parse import (
    FOREIGN,
    GpuState,
    Look,
    Part,
    Row,
    account_of,
    reading_of,
    row_of,
    step,
)

SUCCESS, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, TOO_SMALL = 0, 2, 3, 4, 6, 7
NOT_LOADED, NO_LIBRARY, NO_FUNCTION, OTHER_VERSION = 9, 12, 13, 25
ON, TCC, WDDM = 1, 1, 0
TRIES = 5
"""How often a call is repeated when more rows came between asking for their number and fetching them."""

_FIELDS = ("pid", "timeStamp", "smUtil", "memUtil", "encUtil", "decUtil", "jpgUtil", "ofaUtil")
_NEWER, _OLDER = "nvmlDeviceGetProcessesUtilizationInfo", "nvmlDeviceGetProcessUtilization"
_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses",
)
MIG = Unknown(
    "this NVIDIA GPU is split into instances (MIG), where no time of processes is told. Use a GPU without MIG."
)
TCC_MODE = Unknown(
    "this NVIDIA GPU is in TCC mode, where Windows tells no time of processes. Switch it (`nvidia-smi -dm 0`), or use"
    " Linux."
)
WSL = Unknown("under WSL2 NVIDIA's driver tells no time of processes. Run the job on Linux itself, or on Windows.")
ON_WINDOWS = Unknown("Windows tells the time of NVIDIA's GPUs itself (source pdh). Nothing to do.")
ON_MAC = Unknown("this is macOS, which has no NVIDIA driver. The source ioreg reads its GPUs.")


class NvmlReader:
    """Reads all NVIDIA GPUs. `library` is the module pynvml, or anything with its functions."""

    name = "nvml"
    reads = "NVIDIA's samples of which process used a GPU, or its accounting where that is switched on"

    def __init__(
        self,
        library: Any = None,
        *,
        proc: str = "/proc",
        platform: str = sys.platform,
        clock: Callable[[], float] = time.monotonic,
        lives: Callable[[int], bool] = lives,
    ) -> None:
        self._lives = lives
        self._given = library
        self._proc = proc
        self._platform = platform
        self._clock = clock
        self._nvml: Any = None  # once it was initialised
        self._states: dict[str, GpuState] = {}
        self._marks: dict[str, dict[int, Mark]] = {}
        self._raw: dict[str, list[dict[str, Any]]] = {}  # what the last call of `read` was given, by GPU
        self._members: frozenset[ProcessKey] | None = None  # of the last reading
        self._began = 0.0  # Unix seconds of the first reading
        self._newer: dict[str, bool] = {}  # which of the two calls a GPU's stamps came from

    def hindrance(self) -> Unknown | None:
        """Say why it can't read here; loads the driver's library."""
        if self._platform == "darwin":
            return ON_MAC
        if self._is_wsl():
            return WSL
        fault = self._begin()
        if fault is not None:
            return fault
        try:
            count = self._nvml.nvmlDeviceGetCount()
            if self._platform == "win32":
                models = [self._driver_model(self._nvml.nvmlDeviceGetHandleByIndex(index)) for index in range(count)]
                return None if TCC in models else ON_WINDOWS
        except self._nvml.NVMLError as error:
            return _failed("counting GPUs", error)
        return None if count else Unknown("the NVIDIA driver is loaded and finds no GPU. Look at `nvidia-smi`.")

    def read(self, members: Collection[ProcessKey]) -> GpuReading:
        """Ask every GPU once."""
        pids = {key.pid for key in members}
        fault = WSL if self._is_wsl() else self._begin()
        if fault is not None:
            return GpuReading(self._clock(), unknown=dict.fromkeys(pids, fault))
        self._follow(frozenset(members))
        users = {pid for pid in pids if self._may_use(pid)}
        try:
            count = self._nvml.nvmlDeviceGetCount()
        except self._nvml.NVMLError as error:
            return GpuReading(self._clock(), unknown=dict.fromkeys(users, _failed("counting GPUs", error)))
        parts = [self._read_gpu(index, users, pids) for index in range(count)]
        return reading_of(self._clock(), parts)

    def raw(self, members: Collection[ProcessKey]) -> Any:
        """Ask every GPU once and give each one's answers; other processes' rows are kept, for their stamps."""
        self._raw = {}
        self.read(members)
        return self._raw

    def recording(self, raws: Sequence[Any]) -> Mapping[str, bytes]:
        """Give one JSON file a GPU: its calls for utilisation, or its readings of accounts."""
        files = {}
        for number, gpu in enumerate(sorted({gpu for raw in raws for gpu in raw})):
            rows = [row for raw in raws for row in raw.get(gpu, ())]
            name = "calls" if all("samples" in row for row in rows) else "readings"
            files[f"nvml_{number}.json"] = json.dumps({name: rows}, indent=1).encode()
        return files

    def close(self) -> None:
        """Let the driver's library go. A second call does nothing."""
        nvml, self._nvml = self._nvml, None
        if nvml is not None:
            try:
                nvml.nvmlShutdown()
            except nvml.NVMLError:  # it is gone already
                return

    # ---- one GPU ---------------------------------------------------------------------------------
    def _read_gpu(self, index: int, users: set[int], pids: set[int]) -> Part:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpu = str(nvml.nvmlDeviceGetUUID(handle))
        except nvml.NVMLError as error:
            return Part(unknown=dict.fromkeys(users, _failed(f"GPU {index}", error)))
        if self._platform == "win32" and self._driver_model(handle) != TCC:
            return Part()  # Windows' own counters tell of it
        state = self._states.get(gpu, GpuState())
        listed = self._running(handle)
        # A process that NVML lists uses the GPU, whatever its open files say.
        asked = users | (pids & listed if isinstance(listed, frozenset) else set())
        if self._platform == "win32":  # no open files to look at there
            asked = pids & listed if isinstance(listed, frozenset) else pids
        denied = self._denial(handle)
        if denied is None and self._accounting(handle):
            part = self._read_accounts(gpu, handle, asked, listed)
            if part is not None:
                return part
        if self._marks.pop(gpu, None) is not None:  # accounting was on until now: no sample to begin with yet
            state = GpuState(broken=True)
        rows = self._utilisation(gpu, handle, state.last_us) if denied is None else denied
        look = Look(self._clock(), state.last_us, rows, listed, self._living(rows, listed))
        self._raw[gpu] = [_call(look)]
        self._states[gpu], part = step(state, look, asked)
        return part

    def _denial(self, handle: Any) -> Unknown | None:
        if self._platform == "win32":
            return TCC_MODE
        try:
            return MIG if self._nvml.nvmlDeviceGetMigMode(handle)[0] == ON else None
        except self._nvml.NVMLError:  # it can't be split at all
            return None

    def _driver_model(self, handle: Any) -> int:
        try:
            return self._nvml.nvmlDeviceGetCurrentDriverModel(handle)
        except self._nvml.NVMLError:
            return WDDM

    def _running(self, handle: Any) -> frozenset[int] | Unknown:
        """Give the processes that hold a context on this GPU: the union of the lists that it has."""
        pids: set[int] = set()
        fault: Unknown | None = None
        for name in _LISTS:
            try:
                pids.update(int(process.pid) for process in getattr(self._nvml, name)(handle))
            except self._nvml.NVMLError as error:
                # The list of MPS clients is missing on many GPUs, and graphics on those without a display engine.
                if name == _LISTS[0] or _code(error) not in (NOT_SUPPORTED, NO_FUNCTION, INVALID):
                    fault = _failed("listing processes", error)
        return frozenset(pids) if fault is None else fault

    def _utilisation(self, gpu: str, handle: Any, last_us: int) -> tuple[Row, ...] | Unknown:
        """Ask by the newer call first; a GPU whose stamps came from one of the two stays with it."""
        code = NO_FUNCTION
        for name, is_newer in ((_NEWER, True), (_OLDER, False)):
            if self._newer.get(gpu, is_newer) is is_newer:
                rows = self._rows(name, handle, last_us)
                if not isinstance(rows, int):
                    self._newer[gpu] = is_newer
                    return rows
                code = rows
        return _refused(code)

    def _rows(self, name: str, handle: Any, last_us: int) -> tuple[Row, ...] | int:
        """Give the rows of one call, or the driver's error code."""
        code = TOO_SMALL
        for _ in range(TRIES):
            try:
                found = getattr(self._nvml, name)(handle, last_us)
                return tuple(row_of(_fields(row)) for row in found)
            except self._nvml.NVMLError as error:
                code = _code(error)
                if code in (NOT_FOUND, SUCCESS):  # pynvml raises "success" where there are no rows
                    return ()
                if code != TOO_SMALL:
                    return code
        return code

    # ---- accounting ------------------------------------------------------------------------------
    def _accounting(self, handle: Any) -> bool:
        try:
            return self._nvml.nvmlDeviceGetAccountingMode(handle) == ON
        except self._nvml.NVMLError:
            return False

    def _read_accounts(self, gpu: str, handle: Any, pids: set[int], listed: frozenset[int] | Unknown) -> Part | None:
        """Read the statistics of each process; None where the driver is too old to give them."""
        t = self._clock()
        named = listed if isinstance(listed, frozenset) else frozenset()
        living = self._living((), named)
        if named and living is not None and not living:
            self._marks[gpu] = dict.fromkeys(pids)
            return Part(unknown=dict.fromkeys(pids, FOREIGN))
        accounts: dict[int, Account | Unknown] = {}
        for pid in pids:
            try:
                stats = self._nvml.nvmlDeviceGetAccountingStats_v2(handle, pid)
                accounts[pid] = account_of({"sampleCount": int(stats.sampleCount), "sumGpuUtil": int(stats.sumGpuUtil)})
            except self._nvml.NVMLError as error:
                if _code(error) in (NO_FUNCTION, NOT_SUPPORTED, OTHER_VERSION):
                    return None
                if _code(error) != NOT_FOUND:  # not found: it never had a context here
                    accounts[pid] = _failed(f"the account of pid {pid}", error)
        self._raw[gpu] = [
            {"t_s": t, "pid": pid, "sampleCount": account.samples, "sumGpuUtil": account.total}
            for pid, account in accounts.items()
            if isinstance(account, Account)
        ]
        marks = self._marks.get(gpu)
        if marks is None and self._states.pop(gpu, None) is not None:  # samples were read until now
            marks = dict.fromkeys(pids)
        self._marks[gpu], added, unknown = nvml_accounting.step(marks, t, accounts)
        self._marks[gpu] = {pid: mark for pid, mark in self._marks[gpu].items() if pid in pids}
        return Part(tuple(added), unknown)

    def _follow(self, members: frozenset[ProcessKey]) -> None:
        """Keep accounts apart that are not the job's: of an earlier process with the pid, or from before it joined."""
        if self._members is None:
            self._began = time.time()
        else:
            for key in members - self._members:
                for marks in self._marks.values():
                    marks.pop(key.pid, None)
                    if key.start < self._began - START_RESOLUTION_S:
                        marks[key.pid] = None
        self._members = members

    # ---- the machine -----------------------------------------------------------------------------
    def _begin(self) -> Unknown | None:
        if self._nvml is not None:
            return None
        try:
            nvml = self._given if self._given is not None else importlib.import_module("pynvml")
        except ImportError:
            return Unknown("nvidia-ml-py is not installed. Install it: `pip install nvidia-ml-py`.")
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            if _code(error) in (NOT_LOADED, NO_LIBRARY):
                return Unknown("no NVIDIA driver is loaded here. Install it if this machine has an NVIDIA GPU.")
            return _failed("starting NVML", error)
        self._nvml = nvml
        return None

    def _is_wsl(self) -> bool:
        if not self._platform.startswith("linux"):
            return False
        try:
            with open(f"{self._proc}/version", encoding="utf-8", errors="replace") as file:
                return "microsoft" in file.read(4096).lower()
        except OSError:
            return False

    def _may_use(self, pid: int) -> bool:
        """Say whether a process has an NVIDIA device open; true where nobody can look."""
        folder = f"{self._proc}/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return True
        if not names:  # so it looks, too, when the first thread has ended and others run on
            return True
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}").startswith("/dev/nvidia"):
                    return True
            except FileNotFoundError:
                continue
            except OSError:
                return True
        return False

    def _living(self, rows: tuple[Row, ...] | Unknown, listed: frozenset[int] | Unknown) -> frozenset[int] | None:
        """Give those of the pids named that live in this pid namespace."""
        if not self._platform.startswith("linux"):
            return None
        named = {row.pid for row in rows if row.pid} if isinstance(rows, tuple) else set()
        named |= listed if isinstance(listed, frozenset) else set()
        return frozenset(pid for pid in named if self._lives(pid))


def _fields(row: Any) -> Mapping[str, int]:
    return {name: int(getattr(row, name)) for name in _FIELDS if hasattr(row, name)}


def _call(look: Look) -> dict[str, Any]:
    known = isinstance(look.rows, tuple)
    rows = look.rows if isinstance(look.rows, tuple) else ()
    return {
        "t_s": look.t,
        "lastSeenTimeStamp": look.asked_us,
        "running": sorted(look.running) if isinstance(look.running, frozenset) else None,
        "ret": ("SUCCESS" if rows else "NOT_FOUND") if known else "UNKNOWN",
        "samples": [{"pid": row.pid, "timeStamp": row.stamp_us, "smUtil": row.percent} for row in rows],
    }


def _code(error: Exception) -> int:
    return int(getattr(error, "value", -1))


def _failed(what: str, error: Exception) -> Unknown:
    return Unknown(f"NVML failed at {what}: {str(error)[:80]} (code {_code(error)}). Look at `nvidia-smi`.")


def _refused(code: int) -> Unknown:
    if code in (NOT_SUPPORTED, NO_FUNCTION, INVALID, OTHER_VERSION):
        return Unknown(
            "this GPU or driver tells no time of processes (before Maxwell, or a virtual GPU). Use another one."
        )
    if code == NO_PERMISSION:
        return Unknown("the NVIDIA driver refuses this user the utilisation of processes. Run as root.")
    return Unknown(f"NVML gave no utilisation of processes (code {code}). Look at `nvidia-smi`.")
