"""A runner from outside: started as an agent starts it, steered by its files and signals alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs

BUNDLE = Path("packages/llmserve").absolute()
DEADLINE_S = 60.0  # generous: only a hang reaches it


def spec(payload: Any, stage: str | None = None, **more: Any) -> dict[str, Any]:
    envelope = {
        "envelope": 1,
        "schema": "llmserve/spec@1",
        "module_id": "dev.oarbank.llmserve",
        "module_version": "0.1.0",
        "job_key": "0" * 64,
        "protocol": 1,
        "payload": payload,
    }
    return {**envelope, **({} if stage is None else {"stage": stage}), **more}


class Run:
    """One attempt in `workdir`."""

    def __init__(
        self,
        workdir: Path,
        document: dict[str, Any] | bytes,
        *,
        control: dict[str, Any] | None = None,
        data: Path | None = None,
        env: dict[str, str] | None = None,
        cpus: set[int] | None = None,
        runner: Path = BUNDLE / "llmserve_runner.py",
    ) -> None:
        if sys.platform == "win32":
            pytest.skip(f"needs Linux or macOS: {needs.RUNNERS}")
        workdir.mkdir(parents=True, exist_ok=True)
        self.workdir = workdir
        self.before = {"spec.json", "control.json"}
        (workdir / "spec.json").write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        self.control(control or {"seq": 0}, nudge=False)
        self._cpus = cpus
        files = {name: str(workdir / f"{name}.json") for name in ("spec", "result")}
        argv = [sys.executable, "-I", str(runner), "run", "--spec", files["spec"], "--workdir", str(workdir)]
        self.process = subprocess.Popen(
            [*argv, "--out", files["result"], "--events", str(workdir / "events.ndjson")],
            cwd=workdir,
            env=environment(workdir, data, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=self._in_child,
            start_new_session=True,
        )

    def _in_child(self) -> None:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        if self._cpus:
            os.sched_setaffinity(0, self._cpus)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def control(self, document: dict[str, Any], *, nudge: bool = True) -> float:
        """Replace the document, then nudge; the moment of the nudge."""
        beside = self.workdir / "control.json.new"
        beside.write_text(json.dumps(document))
        beside.replace(self.workdir / "control.json")
        if nudge:
            self.process.send_signal(signal.SIGUSR1)
        return time.monotonic()

    def wait_for(self, what: Callable[[], Any], saying: str) -> Any:
        """Poll until `what()` is true, while the runner lives."""
        deadline_s = time.monotonic() + DEADLINE_S
        while True:
            ended = self.process.poll() is not None
            found = what()
            if found:
                return found
            assert not ended, f"ended ({self.process.returncode}) before {saying}: {self.process.stderr.read()!r}"
            assert time.monotonic() < deadline_s, f"no {saying} in {DEADLINE_S} s"
            time.sleep(0.005)

    def wait_for_phase(self) -> str:
        self.wait_for((self.workdir / "phase").exists, "a phase")
        return (self.workdir / "phase").read_text()

    def wait_for_exit(self, deadline_s: float = DEADLINE_S) -> int:
        self.out, self.err = self.process.communicate(timeout=deadline_s)
        return self.process.returncode

    def json(self, name: str) -> Any:
        return json.loads((self.workdir / name).read_text())

    def written(self) -> set[str]:
        """What the runner wrote."""
        return {path.name for path in self.workdir.iterdir()} - self.before

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        path = self.workdir / "events.ndjson"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if name is None or event.get("name") == name]


def environment(workdir: Path, data: Path | None = None, env: dict[str, str] | None = None) -> dict[str, str]:
    """Exactly what an agent hands down."""
    own = {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(workdir),
        "LANG": "C",
        "LC_ALL": "C",
        "PYTHONUTF8": "1",
        "OARBANK_WORKDIR": str(workdir),
        "OARBANK_TMP": str(workdir / "tmp"),
        "OARBANK_MODULE": "llmserve",
        "OARBANK_PROTOCOL": "1",
        "GOMP_SPINCOUNT": "10000",
    }
    if data is not None:
        own["OARBANK_MODULE_DATA"] = str(data)
    return {**own, **(env or {})}
