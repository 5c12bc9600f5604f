"""Records the CPU clocks of processes, as `cpu_recording_parse` reads them: what stands in where no GPU can be read.

Linux gives `/proc/PID/stat`, with the program's name blanked out; other systems give psutil's process times, written in
the ticks of a clock of 1 GHz. One file a process.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psutil

from oarbank_agent_check.readings import NS_PER_S, ProcessKey

UP_TO_START = 20
"""How many fields behind the name are kept: up to the start time, field 22."""


class CpuRecorder:
    """A `Recorder` of CPU time that every system has."""

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._linux = sys.platform.startswith("linux")

    def raw(self, members: Collection[ProcessKey]) -> tuple[float, dict[int, dict[str, Any]]]:
        """Read the members once; those that ended in between or can't be read are left out."""
        t, found = time.monotonic(), {}
        for key in members:
            row = self._linux_row(key.pid) if self._linux else _psutil_row(key.pid)
            if row is not None:
                found[key.pid] = row
        return t, found

    def recording(self, raws: Sequence[tuple[float, dict[int, dict[str, Any]]]]) -> Mapping[str, bytes]:
        """Give `cpu-PID.json` for each process."""
        files: dict[str, bytes] = {}
        head = {"clk_tck": os.sysconf("SC_CLK_TCK")} if self._linux else {"hw_tbfrequency": NS_PER_S}
        for pid in sorted({pid for _, rows in raws for pid in rows}):
            rows = [{"t_s": round(t - raws[0][0], 3), **found[pid]} for t, found in raws if pid in found]
            files[f"cpu-{pid}.json"] = json.dumps({**head, "readings": rows}, indent=1).encode() + b"\n"
        return files

    def _linux_row(self, pid: int) -> dict[str, Any] | None:
        try:
            with open(f"{self._proc}/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read(4096)
        except OSError:
            return None
        fields = stat[stat.rfind(")") + 2 :].split()[:UP_TO_START]  # what follows are addresses of its memory
        row = {"stat": f"{pid} (process) {' '.join(fields)}"}
        with suppress(OSError), open(f"{self._proc}/{pid}/schedstat", encoding="ascii") as file:
            row["schedstat"] = file.read(256).strip()
        return row


def _psutil_row(pid: int) -> dict[str, Any] | None:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return None
    return {
        "pid": pid,
        "pti_total_user": round(times.user * NS_PER_S),
        "pti_total_system": round(times.system * NS_PER_S),
    }
