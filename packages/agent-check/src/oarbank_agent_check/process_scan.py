"""Find the processes of protected programs among all of this machine's.

Reads names and command lines and hands pids on; which of them fit is `guard_config`'s to say. What belongs to this
program itself (its own process, and whatever it started) is never a protected program.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

import psutil

from oarbank_agent_check.guard_config import Match
from oarbank_agent_check.process_table import system_table

SCAN_S = 0.5
"""Seconds between two scans."""

SETTLES_S = 10.0
"""A young process may still become another program by an exec; one that is older is asked again only now and then."""

ANEW_S = 30.0
"""Everybody is asked again after so long."""


class ProcessScan:
    """Scans for several programs at once. For one thread."""

    def __init__(self, programs: Mapping[str, Match]) -> None:
        self._programs = dict(programs)
        self._own = os.getpid()
        self._table = system_table()
        self._settled: dict[int, tuple[str, ...]] = {}  # pid: the programs it is of
        self._anew_at = 0.0

    def pids(self) -> dict[str, list[int]]:
        """Give the pids of each program that live now, lowest first."""
        found: dict[str, list[int]] = {name: [] for name in self._programs}
        if not self._programs:
            return found
        now = time.monotonic()
        if now >= self._anew_at:
            self._settled.clear()
            self._anew_at = now + ANEW_S
        try:
            living = psutil.pids()
        except (OSError, psutil.Error):
            return found
        ours = self._ours()
        there = set(living)
        self._settled = {pid: names for pid, names in self._settled.items() if pid in there}
        for pid in living:
            if pid in ours:
                continue
            names = self._settled.get(pid)
            for name in self._asked(pid) if names is None else names:
                found[name].append(pid)
        return found

    def _asked(self, pid: int) -> Sequence[str]:
        """Which programs a process is of."""
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                if process.status() == psutil.STATUS_ZOMBIE:
                    return ()
                born = process.create_time()
                name = process.name()
                arguments = self._arguments(process)
        except psutil.Error:
            return ()
        names = tuple(one for one, match in self._programs.items() if match.fits(pid, name, arguments))
        if time.time() - born > SETTLES_S:
            self._settled[pid] = names
        return names

    def _arguments(self, process: psutil.Process) -> Sequence[str]:
        try:
            return process.cmdline()
        except psutil.Error:  # another user's: its name can still fit
            return ()

    def _ours(self) -> frozenset[int]:
        self._table.begin_round()
        found, todo = {self._own}, [self._own]
        while todo:
            below = [pid for pid in self._table.children(todo.pop()) if pid not in found]
            found.update(below)
            todo += below
        return frozenset(found)
