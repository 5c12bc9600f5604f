"""What this node can do for the module: which backends load, told in one line of JSON.

Each backend is tried in a process of its own with a time limit, because an import can hang, crash or print. The module
is healthy when the stand-in works, since that certifies it; a backend that does not load is a failed check, with
the end of the cause. The doctor must write no file.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from oarbank_llmserve import engines
from oarbank_llmserve.engines import stub
from oarbank_llmserve.job import Prompt
from oarbank_llmserve.sampling import PromptSampler

LIMIT_S = 25.0  # for all backends together; an agent waits 60 s
_MARK = "oarbank-llmserve probe: "
_CHILD = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.argv[1])\n"
    "from oarbank_llmserve.doctor import probe_here\n"
    "probe_here(sys.argv[2])\n"
)
_STUB_ANSWER = (7, 12)  # what the stand-in says after one byte


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's answer."""

    name: str
    ok: bool
    detail: str = ""


def main(*, as_json: bool) -> int:
    """Print the answer; the exit status is 0 even where something is missing."""
    checks = check_backends()
    if as_json:
        print(json.dumps(report(checks)), flush=True)
    else:
        for check in checks:
            print(f"{'ok  ' if check.ok else 'none'}  {check.name:<17} {check.detail}")
    return 0


def report(checks: list[Check]) -> dict[str, Any]:
    """The document `runner-doctor-1`."""
    loaded = [check.name.removeprefix("backend ") for check in checks if check.ok]
    return {
        "runner_protocol": {"supported": [1]},
        "health": "healthy" if "stub" in loaded else "unhealthy",
        "capabilities": [],
        "attrs": {"platform": platform_token(platform.system(), platform.machine()), "backends": loaded},
        "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks],
    }


def platform_token(system: str, machine: str) -> str:
    """`<os>-<arch>`, as agents name platforms."""
    arch = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(machine.lower())
    return f"{system.lower()}-{arch or machine.lower().replace('-', '_') or 'unknown'}"


def check_backends(names: tuple[str, ...] = engines.NAMES, limit_s: float = LIMIT_S) -> list[Check]:
    """One check a backend, in the order of `names`; none takes longer than `limit_s` seconds."""
    deadline_s = time.monotonic() + limit_s
    probes = {name: _start(name) for name in names if name != "stub"}  # side by side
    checks = []
    for name in names:
        check = _check_stub() if name == "stub" else _wait(name, probes[name], deadline_s)
        checks.append(check)
    return checks


def probe_here(name: str) -> None:
    """In the child: import the backend and print a marked line."""
    try:
        backend = engines.load(name)
        versions = ", ".join(f"{package} {version}" for package, version in backend.versions().items())
        answer = {"ok": True, "detail": f"{versions}, {backend.device()}"}
    except engines.NoBackend as fault:
        answer = {"ok": False, "detail": str(fault).removeprefix(f"backend {name}: ")}
    print(f"\n{_MARK}{json.dumps(answer)}", flush=True)
    os._exit(0)  # a library's clean-up may hang as well as its import


def _check_stub() -> Check:
    engine, sampler = stub.open_engine(engines.Options(None)), PromptSampler(Prompt(text="a"))
    first = engine.prefill(0, engine.tokenize("a"), first=True, last=sampler) or 0
    found = (first, *engine.step([engines.Live(0, first, sampler)]))
    return Check("backend stub", found == _STUB_ANSWER, "stand-in, cpu" if found == _STUB_ANSWER else f"said {found}")


def _start(name: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-B", "-c", _CHILD, json.dumps(sys.path), name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )  # in our own process group, so that whoever ends us ends it


def _wait(name: str, child: subprocess.Popen[str], deadline_s: float) -> Check:
    label = f"backend {name}"
    try:
        out, err = child.communicate(timeout=max(deadline_s - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        _kill(child)
        return Check(label, False, "its import did not end in time")
    marked = [line for line in out.splitlines() if line.startswith(_MARK)]
    if not marked:
        last = (err.strip().splitlines() or ["no word on stderr"])[-1]
        return Check(label, False, f"its import ended the process ({child.returncode}): {last[-200:]}")
    answer = json.loads(marked[-1].removeprefix(_MARK))
    return Check(label, answer["ok"], answer["detail"])


def _kill(child: subprocess.Popen[str]) -> None:
    child.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):  # something it started may hold the pipes open
        child.communicate(timeout=1.0)
