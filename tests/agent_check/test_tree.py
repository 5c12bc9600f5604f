"""Who belongs to a job, on a machine on paper and on the real one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field

import pytest

from oarbank_agent_check import process_table
from oarbank_agent_check.process_table import NoProcesses, ProcTable, PsutilTable, parse_stat, system_table
from oarbank_agent_check.readings import ProcessKey, Unknown
from oarbank_agent_check.tree import NoSuchProcess, ProcessTree, UnreadableProcess
from tests.agent_check.wait import eventually

BLIND = Unknown("/proc/9 is hidden from this user (hidepid). Run as the owner of the process.")


@dataclass
class PaperMachine:
    """A process table that a test writes itself: pid -> (start, parent), or an unknown."""

    processes: dict[int, tuple[float, int] | Unknown] = field(default_factory=dict)
    pause_s: float = 0.05
    asked: int = 0

    def identify(self, pid):
        self.asked += 1
        found = self.processes.get(pid)
        return found if found is None or isinstance(found, Unknown) else ProcessKey(pid, found[0])

    def children(self, pid):
        self.asked += 1
        return [p for p, found in self.processes.items() if isinstance(found, tuple) and found[1] == pid]

    def newest(self):
        return None

    def begin_round(self):
        pass


def machine(**extra) -> PaperMachine:
    """Root 5 with child 6 and grandchild 7; 8 belongs to somebody else."""
    return PaperMachine({5: (1.0, 1), 6: (2.0, 5), 7: (3.0, 6), 8: (4.0, 1)}, **extra)


def test_the_tree_is_the_root_and_all_descendants():
    assert ProcessTree(5, table=machine()).pids() == (5, 6, 7)


def test_without_children_it_is_the_root_alone():
    assert ProcessTree(5, children=False, table=machine()).pids() == (5,)


def test_later_children_join():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    paper.processes[20] = (9.0, 7)
    assert tree.members() == (ProcessKey(5, 1.0), ProcessKey(6, 2.0), ProcessKey(7, 3.0))
    assert tree.pids() == (5, 6, 7, 20)


def test_an_orphan_known_before_stays():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    del paper.processes[6]
    paper.processes[7] = (3.0, 1)
    assert tree.pids() == (5, 7)
    assert tree.closed() == (ProcessKey(6, 2.0),)


def test_an_orphan_never_seen_joins_when_it_is_handed_in_and_brings_its_children():
    paper = machine()
    orphans: list[int] = []
    tree = ProcessTree(5, adopted=lambda: orphans, table=paper)
    paper.processes |= {30: (9.0, 1), 31: (9.5, 30)}
    assert tree.pids() == (5, 6, 7)
    orphans.append(30)
    assert set(tree.pids()) == {5, 6, 7, 30, 31}


def test_a_pid_given_out_again_does_not_join():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    paper.processes[6] = (50.0, 1)
    assert tree.pids() == (5, 7)
    assert tree.closed() == (ProcessKey(6, 2.0),)


def test_but_it_does_when_a_member_is_its_parent():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    paper.processes[6] = (50.0, 5)
    assert ProcessKey(6, 50.0) in tree.refresh()
    assert ProcessKey(6, 2.0) not in tree.members()


def test_a_closed_process_that_is_handed_in_late_stays_closed():
    paper = machine()
    tree = ProcessTree(5, adopted=lambda: [6], table=paper)
    gone = paper.processes.pop(6)
    tree.refresh()
    paper.processes[6] = gone
    assert 6 not in tree.pids()


def test_the_tree_outlives_its_root():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    del paper.processes[5]
    assert tree.pids() == (6, 7)


def test_a_member_that_becomes_unreadable_stays_and_is_told():
    paper = machine()
    tree = ProcessTree(5, table=paper)
    paper.processes[7] = BLIND
    assert tree.pids() == (5, 6, 7)
    assert tree.unreadable() == {7: BLIND}
    paper.processes[7] = (3.0, 6)
    tree.refresh()
    assert tree.unreadable() == {}


def test_an_orphan_that_cannot_be_identified_is_told_as_long_as_it_is_handed_in():
    paper = machine()
    paper.processes[9] = BLIND
    orphans = [9]
    tree = ProcessTree(5, adopted=lambda: orphans, table=paper)
    assert tree.unreadable() == {9: BLIND}
    assert 9 not in tree.pids()
    orphans.clear()
    tree.refresh()
    assert tree.unreadable() == {}


def test_a_root_that_is_not_there_or_not_readable_is_an_error_that_says_so():
    with pytest.raises(NoSuchProcess, match="pid 77: must be a process that runs on this machine; found none") as fault:
        ProcessTree(77, table=machine())
    assert fault.value.pid == 77
    with pytest.raises(UnreadableProcess, match="pid 9: /proc/9 is hidden"):
        ProcessTree(9, table=PaperMachine({9: BLIND}))


def test_a_refresh_asks_about_members_alone():
    paper = machine()
    paper.processes |= dict.fromkeys(range(1000, 3000), (5.0, 1))
    tree = ProcessTree(5, table=paper)
    paper.asked = 0
    tree.refresh()
    assert paper.asked <= 8


# ---- the process tables --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "then"),
    [
        (b"1 (init) S 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 25 0 0", ("S", 1, 25)),
        (b"7 (a) R 1 (b)) Z 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 12 0 74749 0 0", ("Z", 12, 74749)),
        (b"7 () X 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 0 0 74749", ("X", 0, 74749)),
        (b"7 (\xff\xfe) S 0 1 1 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 5\n", ("S", 1, 5)),
    ],
)
def test_a_stat_line_is_split_after_the_last_bracket(text, then):
    assert parse_stat(text) == then


def test_no_proc_is_told_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(NoProcesses, match=r"must be mounted.*Mount it"):
        system_table(str(tmp_path))


def tables() -> list:
    here = [PsutilTable]
    return [*here, ProcTable] if isinstance(system_table(), ProcTable) else here


@pytest.fixture(params=tables())
def table(request):
    return request.param()


def test_this_process_is_identified_the_same_way_twice(table):
    first = table.identify(os.getpid())
    assert isinstance(first, ProcessKey)
    assert table.identify(os.getpid()) == first
    assert first.start > 1_500_000_000


def test_a_pid_that_is_not_given_out_is_nobody(table):
    assert table.identify(1 << 30) is None
    assert list(table.children(1 << 30)) == []


def test_both_tables_agree_about_the_start_of_a_process():
    starts = [table().identify(os.getpid()).start for table in tables()]
    assert max(starts) - min(starts) < 1.5  # psutil takes the boot time in whole seconds


@pytest.fixture
def sleeper():
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    yield process
    process.stdin.close()
    process.wait()


def test_a_child_is_found_and_a_zombie_is_nobody(table, sleeper):
    def children() -> list[int]:
        table.begin_round()
        return list(table.children(os.getpid()))

    assert sleeper.pid in children()
    sleeper.kill()
    # Until its parent asks, a dead process stays in the table.
    eventually(lambda: table.identify(sleeper.pid) is None, "the dead child counts as ended")
    assert sleeper.returncode is None


@pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc")
def test_something_new_shows_in_newest():
    table = ProcTable()
    before = table.newest()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert before is not None
    assert table.newest() != before


@pytest.mark.skipif(not isinstance(system_table(), ProcTable), reason="needs Linux: /proc")
def test_a_live_process_that_proc_does_not_show_is_unknown_not_gone(monkeypatch, sleeper):
    monkeypatch.setattr(process_table, "_read", lambda path: None)
    found = ProcTable().identify(sleeper.pid)
    assert isinstance(found, Unknown)
    assert str(sleeper.pid) in found.reason
    assert ProcTable().identify(1 << 30) is None
