"""The process between a runner and its starter: it starts the runner as an agent would, and it always cleans up.

Run as a script, never imported: `python -I -S guard.py`. One JSON line on stdin says what to start; events go to
stdout, one JSON object a line: `started`, `ended`, `gone`, or `failed`. A `kill` line, or the end of stdin because the
starter is gone for whatever reason (kill -9 included), ends every process that came from the runner.

On Linux it is the subreaper of what it starts, so a child that detaches itself becomes its own child and is found; the
starter's own process stays as it was. Elsewhere only the runner's process group can be followed. It must never outlive
its starter.

Never run: macOS; tested on Linux, where a subreaper does more.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_LIMIT_S = 5.0  # a process that SIGKILL does not end by then hangs in the kernel


def main() -> int:
    """Start what the first line orders, tell when it ends, and end everything when asked or abandoned."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    order = json.loads(sys.stdin.buffer.readline())
    orphans = _control(PR_SET_CHILD_SUBREAPER, 1)
    pid, fault = _start(order)
    if fault is not None:
        _say(event="failed", reason=fault)
        return 0
    _say(event="started", pid=pid, orphans=orphans)
    asked = _watch(pid, wake)
    left = _end_all(pid, orphans, asked or [])
    if asked is None:
        shutil.rmtree(order["scratch"], ignore_errors=True)  # the starter is gone and cannot
    else:
        _say(event="gone", left=left)
    return 0


def _say(**event: object) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (json.dumps(event) + "\n").encode())


def _control(option: int, value: int) -> bool:
    """Linux' prctl(2); False where there is none."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def _start(order: dict) -> tuple[int, str | None]:
    """Fork and exec; the reason comes back through a pipe that a successful exec closes."""
    tell, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(order)
        except BaseException as exc:
            os.write(told, str(getattr(exc, "strerror", None) or exc).encode())
        os._exit(127)
    os.close(told)
    os.close(order["stdout"])
    os.close(order["stderr"])
    reason = os.read(tell, 4096).decode(errors="replace")
    os.close(tell)
    if reason:
        os.waitpid(pid, 0)
        return pid, reason
    return pid, None


def _become(order: dict) -> None:
    """In the child: a session of its own, a nudge that is ignored, nothing inherited, then the runner."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # survives the exec: a nudge that comes too early is lost, not deadly
    _control(PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(order["stdout"], 1)
    os.dup2(order["stderr"], 2)
    os.set_inheritable(order["stdout"], False)
    os.set_inheritable(order["stderr"], False)
    os.chdir(order["cwd"])
    os.execve(order["argv"][0], order["argv"], order["env"])


def _watch(pid: int, wake: int) -> list[int] | None:
    """Until a `kill` line: the pids it names. None when stdin ended without one."""
    rest = b""
    while True:
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            _reap(pid)
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                return None
            rest += chunk
            if b"\n" in rest:
                return json.loads(rest.partition(b"\n")[0])["kill"]


def _reap(pid: int) -> bool:
    """Bury who has ended, and say so when it was the runner. False when there is nobody left to wait for."""
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if ended == 0:
            return True
        if ended == pid:
            _say(event="ended", code=os.waitstatus_to_exitcode(status), at=time.monotonic())


def _end_all(pid: int, orphans: bool, others: list[int]) -> int:
    """Kill until nobody is left; how many would not go."""
    give_up = time.monotonic() + KILL_LIMIT_S
    while True:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        left = _descendants() if orphans else others
        for other in left:
            with contextlib.suppress(OSError):
                os.kill(other, signal.SIGKILL)
        anybody = _reap(pid)
        if not anybody or time.monotonic() >= give_up:
            return len(_descendants()) if anybody and orphans else 0
        time.sleep(0.002)


def _descendants() -> list[int]:
    """Everybody below this process, from one scan of /proc: whoever detaches in between is found in the next round."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    todo = [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as exc:  # the one fence of this program: the starter learns what broke, and blames nobody else
        _say(event="broken", reason=f"{type(exc).__name__}: {exc}")
        sys.exit(3)
