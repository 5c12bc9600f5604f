"""A protected program as the agent sees it: whether it uses the GPU, how far it has come, and what the law hears of it.

The shell around `presence` and `pressure`: it measures the program's processes and reads its counter. What it found is
handed on as inputs of the law; nothing is decided here about jobs, but for one thing: while the program's own speed is
not known yet, no level is told, so that nothing runs beside it until it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from oarbank_agent_check.check import SAMPLE_S
from oarbank_agent_check.gpu_meter import GpuMeter
from oarbank_agent_check.gpu_readings import GpuReader
from oarbank_agent_check.guard_config import Protect
from oarbank_agent_check.guard_view import ProgramView
from oarbank_agent_check.inputs import Input, Protected, Speed
from oarbank_agent_check.inputs import Pressure as PressureTold
from oarbank_agent_check.owner_command import OwnerCommand
from oarbank_agent_check.presence import Presence
from oarbank_agent_check.pressure import Pressure, Row
from oarbank_agent_check.progress import FileProgress
from oarbank_agent_check.running_job import Measure
from oarbank_agent_check.sources import Source
from oarbank_agent_check.sources.cpu_threads import CpuThreads
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess

TICK_S = 0.05
"""The CPU's stand-in looks at a program so often: whether it is busy at all needs no finer measure."""


class ProtectedProgram:
    """One program. `level` and `levels` are what was certified beside it; times are the agent's."""

    def __init__(
        self,
        told: Protect,
        level: float | None,
        levels: Mapping[str, float],
        *,
        folder: Path,
        measure: Measure,
        readers: Callable[[], Sequence[GpuReader]],
        learns: bool,
    ) -> None:
        self.name = told.name
        self._level, self._levels = level, dict(levels)
        self._measure: Measure = measure
        self._readers = readers
        self._learns = learns and told.progress is not None and (level is not None or bool(levels))
        self._presence = Presence()
        self._pressure = Pressure(told.target)
        self._has_progress = told.progress is not None
        progress = told.progress
        self._file = None if progress is None or progress.file is None else FileProgress(folder / progress.file)
        self._command = None if progress is None or progress.command is None else OwnerCommand(progress.command)
        self._pids: list[int] = []
        self._tree: ProcessTree | None = None
        self._source: Source | None = None
        self._share: float | None = None
        self._row: Row | None = None
        # active, with its level, and why without
        self._told: tuple[bool, bool, Speed | None] = (False, False, None)
        self._told_at = 0.0

    # ---- what the agent asks --------------------------------------------------------------------------------

    def found(self, t: float, pids: list[int]) -> list[Input]:
        """Take its processes; what the law should hear at once."""
        self._pids = pids
        was = self._presence.there
        there = bool(pids) or (self._tree is not None and bool(self._tree.members()))
        self._presence = self._presence.looked(t, there)
        if was != there:
            self._pressure.restart(t)
            self._row = None
        if not there:
            self._stop()
        elif self._tree is None and pids:
            self._measured_from(t, pids[0])
        return self._standing(t, sampled=False)

    def read(self, t: float, working: bool) -> None:
        """Read the counter, and note whether anything of ours runs on the GPU."""
        self._pressure.work(t, working)
        if self._file is not None:
            count = self._file.read()
            self._pressure.hear(t, count.value, count.fault)
        elif self._command is not None:
            done, value = self._command.answer()
            if done:
                self._pressure.hear(t, value, self._command.fault)

    def sample(self, t: float, least_s: float) -> list[Input]:
        """Measure it and weigh its progress; a measure over less than `least_s` says nothing yet."""
        if self._command is not None and not self._command.ask():
            self._pressure.hear(t, None, self._command.fault)
        if self._source is not None:
            with contextlib.suppress(ValueError):  # no time has passed
                sample = self._source.sample()
                self._share = sample.share if sample.high is None else sample.high
                if sample.window_s >= least_s:
                    self._presence = self._presence.sampled(t, self._share)
        else:
            self._share = None
            self._presence = self._presence.sampled(t, None)
        self._row = self._pressure.row(t) if self._has_progress and self._presence.there else None
        told = self._standing(t, sampled=True)
        known = self._pressure.baseline is not None or not self._learns  # else it is about to be learnt
        if self._row is not None and known and self._told == (True, True, None):
            told.append(PressureTold(t, self._row.value, self.name))
        return told

    def view(self) -> ProgramView:
        """How it stands."""
        row = self._row
        return ProgramView(
            name=self.name,
            there=self._presence.there,
            active=self._presence.active,
            share=self._share,
            rate=self._pressure.rate,
            baseline=self._pressure.baseline,
            pressure=None if row is None else row.value,
            learning=self._told[:2] == (True, False),
            fault=None if row is None else row.why,
        )

    def close(self) -> None:
        """End measuring and its command."""
        self._stop()
        if self._command is not None:
            self._command.close()

    # ---- inside ---------------------------------------------------------------------------------------------

    def _standing(self, t: float, *, sampled: bool) -> list[Input]:
        """Tell that it uses the GPU or no longer does, and its level as soon as its own speed is known.

        Where work of ours runs when it comes, that gets its duty first, and is held for learning from the next sample.
        """
        was_active, had_level, _ = self._told
        active = self._presence.active
        level = not self._learns or self._pressure.baseline is not None
        if not level:
            fresh = sampled and t - self._told_at >= SAMPLE_S / 2
            level = self._pressure.working if not was_active else had_level and not fresh
        speed = self._speed() if active and not level else None
        wanted = (active, active and level, speed)
        if wanted == self._told:
            return []
        self._told, self._told_at = wanted, t
        if not level or not active:
            return [Protected(t, active, program=self.name, speed=speed)]
        return [Protected(t, True, self._level, self._levels, self.name)]

    def _speed(self) -> Speed:
        """Why its own speed is not known yet."""
        return "learning" if self._row is None or self._row.why is None else "unknown"

    def _measured_from(self, t: float, pid: int) -> None:
        try:
            tree = ProcessTree(pid, adopted=lambda: self._pids)
        except (NoSuchProcess, UnreadableProcess):
            return
        self._tree = tree
        if self._measure == "cpu":
            self._source = CpuThreads(tree, TICK_S, keep_s=1.0)
        else:
            self._source = GpuMeter(tree, self._readers())
        self._source.start()

    def _stop(self) -> None:
        source, self._source, self._tree, self._share = self._source, None, None, None
        if source is not None:
            source.stop()
