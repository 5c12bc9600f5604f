"""Which processes belong to a job: the root, all its descendants, and the orphans it left behind.

Decides belonging by (pid, start time), so a pid that is given out again never joins. Who was a descendant once stays
one, whatever its parent is later; who has ended is remembered as closed and never comes back. It must never scan the
machine: it asks a `process_table` about the members it knows and about their children.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from oarbank_agent_check.process_table import ProcessTable, system_table
from oarbank_agent_check.readings import ProcessKey, Unknown


class NoSuchProcess(LookupError):
    """There is no process with this pid, or it has ended."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"pid {pid}: must be a process that runs on this machine; found none. Check the number.")
        self.pid = pid


class UnreadableProcess(PermissionError):
    """The root process lives, yet not even its start time can be read."""

    def __init__(self, pid: int, reason: str) -> None:
        super().__init__(f"pid {pid}: {reason}")
        self.pid = pid
        self.reason = reason


class ProcessTree:
    """The processes of one job, followed from `root_pid`; `adopted` yields pids of orphans that belong to it too.

    With `children=False` it is the root alone. Several threads may use one tree. Raises `NoSuchProcess` or
    `UnreadableProcess` for the root; any other member that cannot be read is listed in `unreadable`.
    """

    def __init__(
        self,
        root_pid: int,
        *,
        adopted: Callable[[], Iterable[int]] = lambda: (),
        children: bool = True,
        table: ProcessTable | None = None,
    ) -> None:
        self._table = table if table is not None else system_table()
        self._adopted = adopted
        self._children = children
        self._lock = threading.Lock()
        self._living: dict[int, ProcessKey] = {}
        self._closed: dict[int, ProcessKey] = {}  # the last one closed under each pid
        self._unreadable: dict[int, Unknown] = {}
        root = self._table.identify(root_pid)
        if root is None:
            raise NoSuchProcess(root_pid)
        if isinstance(root, Unknown):
            raise UnreadableProcess(root_pid, root.reason)
        self.root = root
        self._living[root_pid] = root
        self.refresh()

    @property
    def pause_s(self) -> float:
        """Give the seconds between two refreshes that this system's process table can bear."""
        return self._table.pause_s

    def newest(self) -> object:
        """Give something that differs after any start of a process or thread; None where nothing tells."""
        return self._table.newest()

    def refresh(self) -> tuple[ProcessKey, ...]:
        """Ask who has ended and who is new, and give the living members."""
        with self._lock:
            self._table.begin_round()
            self._close_ended()
            if self._children:
                self._join_new()
            return tuple(self._living.values())

    def members(self) -> tuple[ProcessKey, ...]:
        """Give the living members as of the last refresh, the root first while it lives."""
        with self._lock:
            return tuple(self._living.values())

    def pids(self) -> tuple[int, ...]:
        """Refresh, and give the pids of the living members."""
        return tuple(member.pid for member in self.refresh())

    def closed(self) -> tuple[ProcessKey, ...]:
        """Give the members that have ended: for each pid the last one."""
        with self._lock:
            return tuple(self._closed.values())

    def unreadable(self) -> dict[int, Unknown]:
        """Give the pids that belong here, live, and cannot be identified, each with the reason."""
        with self._lock:
            return dict(self._unreadable)

    def _close_ended(self) -> None:
        for pid, member in list(self._living.items()):
            found = self._table.identify(pid)
            if isinstance(found, Unknown):
                self._unreadable[pid] = found
                continue
            self._unreadable.pop(pid, None)
            if found != member:
                # Either it has ended, or another process has its pid; only a parent's word lets that one in.
                del self._living[pid]
                self._closed[pid] = member
        for pid in [pid for pid in self._unreadable if pid not in self._living]:
            del self._unreadable[pid]

    def _join_new(self) -> None:
        todo = [*self._adopted()]
        for pid in self._living:
            todo.extend(self._table.children(pid))
        while todo:
            pid = todo.pop()
            if pid in self._living:
                continue
            found = self._table.identify(pid)
            if isinstance(found, Unknown):
                self._unreadable[pid] = found
            elif found is not None and found != self._closed.get(pid):
                self._living[pid] = found
                todo.extend(self._table.children(pid))
