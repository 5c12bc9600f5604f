"""Ask an owner's command for a number: how much a protected program slowed, or how far it has come.

One command at a time, in a session of its own; whoever runs it looks in now and then. A command that fails, prints
anything but one number of at least 0, or is not done when the next one is due gives None: stale. It must never turn
a strange answer into a number, and it never decides what a number means.

Never run: Windows; how a command's children are ended there is tested on Linux.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
from typing import IO

import psutil

MOST_BYTES = 4096


def parse(output: bytes) -> float | None:
    """Read the number that a command printed; None for anything else."""
    try:
        value = float(output.decode("ascii").strip())
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


class OwnerCommand:
    """`command` is a line for the shell. `ask` begins, `answer` looks in, `close` ends what still runs."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._output: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self.fault: str | None = None
        """Why the last answer was none."""

    def ask(self) -> bool:
        """Start the command. False when the last one was still running and had to be ended: its answer is None."""
        late = self._process is not None
        if late:
            self.fault = "it was not done in time"
        self.close()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115  (lives until the answer is read)
        try:
            self._process = subprocess.Popen(
                self._command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            self.fault = exc.strerror or str(exc)
            self.close()
            return False
        return not late

    def answer(self) -> tuple[bool, float | None]:
        """Say whether it is done, and its number, None for stale."""
        process, output = self._process, self._output
        if process is None or output is None or process.poll() is None:
            return False, None
        output.seek(0)
        said = output.read(MOST_BYTES)
        self.close()
        if process.returncode != 0:
            self.fault = f"it ended with status {process.returncode}"
            return True, None
        value = parse(said)
        self.fault = None if value is not None else f"it must print a number of at least 0; found {said[:60]!r}"
        return True, value

    def close(self) -> None:
        """End the command and its children; again: nothing."""
        process, self._process = self._process, None
        if process is not None:
            if sys.platform == "win32":
                _kill_tree(process.pid)
            else:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output, self._output = self._output, None
        if output is not None:
            output.close()


def _kill_tree(pid: int) -> None:
    """End a process and all below it, where processes have no group."""
    with contextlib.suppress(psutil.Error):
        shell, below = psutil.Process(pid), []
        with contextlib.suppress(psutil.Error):  # whatever of this is refused, the command itself must end
            shell.suspend()  # it starts no other while its children are counted
            below = shell.children(recursive=True)
        for process in [*below, shell]:
            with contextlib.suppress(psutil.Error):
                process.kill()
