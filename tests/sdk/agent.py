"""What an agent does to a runner, in a few lines: write the control document, nudge."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path


class Agent:
    """Writes control documents and nudges this process, as an agent does."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir
        self.path = workdir / "control.json"
        self.seq = 0

    def write(self, document: dict | str | bytes) -> None:
        data = json.dumps(document) if isinstance(document, dict) else document
        self.path.write_bytes(data if isinstance(data, bytes) else data.encode())

    def nudge(self) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    def say(self, **fields) -> None:
        self.seq += 1
        self.write({"seq": self.seq, **fields})
        self.nudge()

    def later(self, seconds: float, *steps) -> threading.Thread:
        """Run each step after `seconds`, on another thread."""

        def work() -> None:
            for step in steps:
                time.sleep(seconds)
                step()

        thread = threading.Thread(target=work)
        thread.start()
        return thread
