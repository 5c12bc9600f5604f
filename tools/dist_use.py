"""Use the wheels as a stranger would: empty environments, nothing of this checkout, a small real task each.

Each function makes an environment of its own below a temporary folder and works there. Dependencies come as wheels from
whatever index uv is set up for; our own four come from the files given and from nowhere else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.dist_content import MEMBERS

# What would let something of the caller's shell or of this checkout into the environments.
FOREIGN = re.compile(r"^(PYTHON|VIRTUAL_ENV|HATCH_|PIP_|OARBANK_|PYTEST|COVERAGE|XDG_)")
# Every module of a package; what a backend brings (each owner's choice) may be missing, and nothing else.
IMPORT_ALL = """
import importlib, pkgutil, sys
BACKENDS = {"llama_cpp", "mlx", "mlx_lm", "numpy"}
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    assert "site-packages" in package.__file__, package.__file__
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        try:
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
        except ModuleNotFoundError as missing:
            if missing.name.partition(".")[0] not in BACKENDS:
                raise
"""
FROM_FILES = """
import json, sys
from importlib.metadata import distribution
for name in sys.argv[1:]:
    assert json.loads(distribution(name).read_text("direct_url.json"))["url"].startswith("file:"), name
"""
CONTROL = '{"seq": 1, "gpu_duty": 0.3}'


class Fault(Exception):
    """One line or more for a person: what was asked for and what was found."""


def run(
    words: Sequence[str | Path], cwd: Path, codes: Sequence[int] = (0,), env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program that must end with one of `codes`; raises Fault with all that it printed."""
    called = [str(word) for word in words]
    try:
        done = subprocess.run(called, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise Fault(f"{called[0]}: must run to its end within 600 s; found: {fault}") from None
    if done.returncode not in codes:
        wanted = " or ".join(map(str, codes))
        told = f"{done.stdout}{done.stderr}".strip()
        raise Fault(f"{' '.join(called)}: must exit {wanted}; found {done.returncode}\n{told}")
    return done


class Place:
    """An empty environment below `folder`, with a home and a working folder of its own."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        run(["uv", "venv", "--quiet", "--no-project", "--python", python, folder / "env"], cwd=folder)
        self.bin = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        kept = {key: value for key, value in os.environ.items() if not FOREIGN.match(key)}
        self.env = kept | {"HOME": str(folder), "PATH": os.pathsep.join([str(self.bin), os.environ["PATH"]])}

    def install(self, *words: str | Path) -> None:
        """Install wheels only, at the versions of $UV_CONSTRAINT; a dependency that must be built is a fault."""
        command = ["uv", "pip", "install", "--quiet", "--python", self.folder / "env", "--only-binary", ":all:"]
        run([*command, *words], cwd=self.work)

    def run(self, *words: str | Path, codes: Sequence[int] = (0,)) -> str:
        """Run a command of the environment there; what it printed on both streams."""
        done = run([self.bin / words[0], *words[1:]], cwd=self.work, codes=codes, env=self.env)
        if "Traceback" in done.stderr:
            raise Fault(f"{' '.join(map(str, words))}: must say it in a line; found a traceback\n{done.stderr}")
        return done.stdout + done.stderr

    def says(self, wanted: str, *words: str | Path, codes: Sequence[int] = (0,)) -> str:
        """Run a command whose output must hold a text; that output."""
        told = self.run(*words, codes=codes)
        if wanted not in told:
            raise Fault(f"{' '.join(map(str, words))}: must say {wanted!r}; found {told[:400]!r}")
        return told

    def conforms(self, folder: str) -> list[str]:
        """Let the kit judge a folder by its exit code; the reason why it could not tell, if it could not."""
        done = run([self.bin / "oarbank-sdk", "conform", folder], cwd=self.work, codes=(0, 3), env=self.env)
        verdict = f"{folder}: {done.stdout.strip().splitlines()[-1]}"
        print(f"judged     {verdict}", flush=True)
        if "the kit itself failed" in done.stdout:
            raise Fault(f"conform {folder}: the kit must not fail itself; found\n{done.stdout}")
        return [] if done.returncode == 0 else [f"conform {verdict}"]


def use_sdk_alone(python: Path, wheel: Path, version: str, folder: Path) -> None:
    """The SDK without any index and without its extra: its commands, and what they say of what is missing."""
    place = Place(python, folder)
    place.install("--no-index", wheel)
    place.says(f"oarbank-sdk {version}", "oarbank-sdk", "--version")
    place.says("Exit codes", "oarbank-sdk", "--help")
    place.says("pip install oarbank-conformkit", "oarbank-sdk", "conform", codes=(2,))
    json.loads(place.run("oarbank-sdk", "schema", "runner-control-1"))
    (place.work / "control.json").write_text(CONTROL)
    place.says("oarbank-sdk[contracts]", "oarbank-sdk", "validate", "runner-control-1", "control.json", codes=(2,))
    place.run("python", "-I", "-c", "import oarbank_sdk.control, oarbank_sdk.duty, oarbank_sdk.supervisor")


def use_everything(python: Path, wheels: Sequence[Path], version: str, folder: Path, *, quick: bool) -> list[str]:
    """All four from their wheels: every module, every command, two runners proved; what could not be told.

    `quick` proves one of them, once.
    """
    place = Place(python, folder)
    place.install(*wheels, "pytest")
    run(["uv", "pip", "check", "--quiet", "--python", folder / "env"], cwd=place.work)
    place.run("python", "-I", "-c", FROM_FILES, *MEMBERS)
    place.run("python", "-I", "-W", "error", "-c", IMPORT_ALL, *MEMBERS.values())
    for command in ("oarbank-sdk", "oarbank-agent-check", "oarbank-llmserve"):
        place.says(f"{command} {version}", command, "--version")
        place.says("usage: ", command, "--help")
        place.says(command, command, codes=(2,))
    untold = [*use_sdk(place), *use_plugin(place, quick=quick), *use_llmserve(place, quick=quick)]
    return untold + use_agent_check(place)


def use_sdk(place: Place) -> list[str]:
    """Documents judged, and a new runner outside any repository proved."""
    (place.work / "control.json").write_text(CONTROL)
    (place.work / "wrong.json").write_text('{"seq": 1, "gpu_duty": 3}')
    place.run("oarbank-sdk", "validate", "runner-control-1", "control.json")
    place.says("/gpu_duty", "oarbank-sdk", "validate", "runner-control-1", "wrong.json", codes=(1,))
    place.says("Prove it", "oarbank-sdk", "new", "runner", "my-runner")
    return place.conforms("my-runner")


def use_plugin(place: Place, *, quick: bool) -> list[str]:
    """The same runner inside pytest, by its plug-in; `quick` only collects the rules."""
    (place.work / "no_tests").mkdir()
    pytest = ("python", "-m", "pytest", "-q", "--oarbank-module", "my-runner", "no_tests")
    if quick:
        place.says("oarbank-module.toml::duty.burst", *pytest, "--collect-only")
        return []
    told = place.run(*pytest, codes=(0, 1))
    summary = told.strip().splitlines()[-1]
    print(f"judged     my-runner in pytest: {summary}", flush=True)
    if " failed" in summary and "could not tell" not in told:
        raise Fault(f"pytest --oarbank-module my-runner: must pass; found\n{told}")
    return [f"pytest: {summary}"] if " failed" in summary else []


def use_llmserve(place: Place, *, quick: bool) -> list[str]:
    """The stand-in completes a prompt, and the written module is proved; `quick` reads its files alone."""
    place.says("stub", "oarbank-llmserve", "doctor")
    (place.work / "prompts.txt").write_text("rivers\n")
    batch = ("oarbank-llmserve", "batch", "--backend", "stub", "--duty", "0.5", "--max-tokens", "4", "prompts.txt")
    place.says("tokens/s", *batch)
    place.run("oarbank-llmserve", "module", "llmserve-module")
    if quick:
        place.run("oarbank-sdk", "conform", "llmserve-module", "--no-runner")
        return []
    return place.conforms("llmserve-module")


def use_agent_check(place: Place) -> list[str]:
    """A process measured, and a job of the written module run and held to its duty."""
    place.says("cpu-threads", "oarbank-agent-check", "sources")
    sleeper = subprocess.Popen([place.bin / "python", "-c", "input()"], stdin=subprocess.PIPE, env=place.env)
    try:
        sample = ("oarbank-agent-check", "sample", "--pid", str(sleeper.pid), "--measure", "cpu")
        (place.work / "samples.ndjson").write_text(place.run(*sample, "--interval", "0.3", "--json"))
    finally:
        sleeper.communicate(b"\n", timeout=60)
    place.run("oarbank-sdk", "validate", "gpu-sample-1", "samples.ndjson")
    payload = '{"prompts": ["rivers"], "max_tokens": 60, "backend": "stub"}'
    job = ("llmserve-module", "--stage", "batch", "--duty", "0.3", "--payload", payload, "--measure", "cpu")
    place.run("oarbank-agent-check", "run", *job, "--state", "state", "--out", "result", codes=(0, 3))
    place.run("oarbank-sdk", "validate", "agent-journal-1", "state/journal.ndjson")
    return []
