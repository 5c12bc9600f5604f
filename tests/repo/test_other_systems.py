"""What Windows lacks is touched in known places alone, and no module needs it to be imported."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.repo.test_house import PACKAGES, ROOT, own_code

# Names of Linux and macOS that this code may come to use; a name that is not here is the type checker's to find.
LACKED = {
    "os": """
        O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK WNOHANG chown chroot eventfd fchdir fchmod
        fchown fork forkpty fstatvfs getegid geteuid getgid getgroups getloadavg getpgid getpgrp getpriority
        getsid getuid killpg lchown lockf major makedev memfd_create minor mkfifo mknod nice openpty
        pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev readv
        register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile set_blocking setgid
        setpgid setpriority setsid setuid statvfs sync sysconf tcsetpgrp ttyname uname wait wait3 wait4
        waitid writev
    """,
    "signal": """
        ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGUSR1 SIGUSR2
        SIGWINCH SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm pause pthread_kill pthread_sigmask
        setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
    """,
    "time": """
        CLOCK_BOOTTIME CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID clock_gettime clock_gettime_ns
        pthread_getcpuclockid
    """,
    "select": "epoll kqueue poll",
    "socket": "AF_UNIX SO_PEERCRED",
}
LACKED_OF = {module: set(names.split()) for module, names in LACKED.items()}
MODULES = ["crypt", "fcntl", "grp", "nis", "posix", "pty", "pwd", "resource", "spwd", "syslog", "termios", "tty"]

# Where each may stand, and why Windows never comes there.
GUARDED = {
    "oarbank_agent_check/agent_state.py": ("finds no fcntl and goes on without", {"fcntl"}),
    "oarbank_agent_check/gpu_meter.py": ("asks whether it is there", {"CLOCK_BOOTTIME", "clock_gettime"}),
    "oarbank_agent_check/jobs/coordinator_process.py": (
        "refuses Windows before it makes a pipe", {"O_CLOEXEC", "O_NONBLOCK", "mkfifo"}
    ),
    "oarbank_agent_check/jobs/guard.py": (
        "a program that RunnerProcess alone starts",
        {"SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGUSR1", "SIGXFSZ", "SIG_SETMASK", "WNOHANG", "fork", "killpg",
         "pthread_sigmask", "set_blocking", "setsid"},
    ),
    "oarbank_agent_check/jobs/runner_process.py": (
        "refuses Windows before it starts", {"SIGKILL", "SIGUSR1", "killpg"}
    ),
    "oarbank_agent_check/owner_command.py": ("asks for the system", {"SIGKILL", "killpg"}),
    "oarbank_agent_check/process_table.py": (
        "the table of Linux; psutil's is used elsewhere",
        {"CLOCK_BOOTTIME", "O_CLOEXEC", "clock_gettime", "pread", "sysconf"},
    ),
    "oarbank_agent_check/running_job.py": ("has a runner that was started", {"SIGCONT", "SIGSTOP"}),
    "oarbank_agent_check/sources/cpu_recording.py": ("asks for Linux", {"sysconf"}),
    "oarbank_agent_check/sources/cpu_threads_read.py": (
        "the reader of Linux; psutil's is used elsewhere", {"O_CLOEXEC", "clock_gettime_ns", "pread", "sysconf"}
    ),
    "oarbank_agent_check/sources/drm_read.py": (
        "has a device to look at, which it finds in /proc",
        {"O_CLOEXEC", "O_DIRECTORY", "clock_gettime_ns", "major", "makedev", "minor"},
    ),
    "oarbank_conformkit/suites/bench.py": (
        "asks for Linux; the signals are for a runner that was started",
        {"SIGKILL", "sched_getaffinity", "sched_setaffinity"},
    ),
    "oarbank_conformkit/suites/retry.py": ("has a runner that was started", {"SIGKILL"}),
    "oarbank_llmserve/engines/llamacpp.py": ("asks whether it is there", {"sched_getaffinity"}),
    "oarbank_sdk/control.py": (
        "in the nudges of the others; or asks whether it is there",
        {"SIGUSR1", "register_at_fork", "set_blocking"},
    ),
    "oarbank_sdk/duty.py": ("asks whether it is there", {"register_at_fork"}),
}  # fmt: skip

# Imports all of ours, and with it the rest of the world, which is written for Windows too. Then ours once more, without
# what Windows lacks.
IMPORT = """
import importlib, json, sys
lacked, blocked, names = json.loads(sys.argv[1])
def import_all():
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name.partition(".")[0] not in ("llama_cpp", "mlx", "mlx_lm"):
                raise
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
import_all()
for name in [name for name in sys.modules if name in blocked or name.partition(".")[0] in json.loads(sys.argv[2])]:
    del sys.modules[name]
for module, gone in lacked.items():
    for name in gone:
        vars(importlib.import_module(module)).pop(name, None)
sys.meta_path.insert(0, Blocked())
sys.platform = "win32"
import_all()
assert "oarbank_agent_check.jobs.runner_process" in sys.modules
"""


def uses(tree: ast.Module) -> set[str]:
    """The names and modules that Windows lacks, in the code of a file."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} & LACKED_OF.get(node.value.id, set())
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names} & LACKED_OF.get(node.module or "", set())
            found |= {node.module or ""} & set(MODULES)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & set(MODULES)
    return found


def test_what_windows_lacks_is_used_where_windows_never_comes() -> None:
    code = [path for path in own_code() if path.is_relative_to(ROOT / "packages")]
    found = {shown(path): names for path in code if (names := uses(ast.parse(path.read_text("utf-8"))))}

    assert found == {path: names for path, (_, names) in GUARDED.items()}


def shown(path: Path) -> str:
    return path.as_posix().rpartition("/src/")[2]


def test_uses_are_found() -> None:
    tree = ast.parse("import fcntl\nfrom signal import SIGHUP\nos.fork()\nos.path\nfrom pwd import getpwnam\nos.O_EXCL")

    assert uses(tree) == {"fcntl", "SIGHUP", "fork", "pwd"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs Linux or macOS, which have the names that are taken away")
def test_names_are_there_to_be_taken_away() -> None:
    assert LACKED_OF["os"] - vars(os).keys() <= {"memfd_create", "eventfd", "pidfd_open", "pipe2", "posix_fadvise",
                                              "posix_fallocate", "sched_getaffinity", "sched_setaffinity"}  # fmt: skip
    assert {"SIGKILL", "SIGUSR1", "SIGHUP"} <= vars(signal).keys()
    assert {"clock_gettime", "CLOCK_MONOTONIC"} <= vars(time).keys()


def test_every_module_can_be_imported_on_windows() -> None:
    names = sorted(
        found.name
        for folder, package in PACKAGES.items()
        for found in pkgutil.walk_packages([str(ROOT / "packages" / folder / "src" / package)], f"{package}.")
        if not found.name.endswith(("__main__", ".templates"))
    )
    told = json.dumps([{module: sorted(gone) for module, gone in LACKED_OF.items()}, MODULES, names])

    ours = json.dumps(list(PACKAGES.values()))
    done = subprocess.run([sys.executable, "-c", IMPORT, told, ours], capture_output=True, text=True, check=False)

    assert len(names) > 150
    assert done.returncode == 0, done.stderr
