"""`hatch run llm:conform`: the conformance kit on llmserve with real backends, at duty 0.3.

The kit starts a runner in an empty data directory, where an owner would have put a model. So a copy of the module's
directory is judged whose runner does the owner's part first: it links the tests' model, in the backend's form, into the
data directory that it was given. Exit 0 when every backend conforms, else the largest of the kit's exit codes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.real_model.conftest import gguf  # noqa: E402
from tests.real_model.mlx_model import convert  # noqa: E402

DUTY = 0.3
LONGEST_MS = 100
WINDOW_S = 10.0  # some 25 units of MLX on two busy cores; the load and the first prompts come before it
MODELS = {"llamacpp": "small.gguf", "mlx": "small"}
PROMPTS = [f"Chapter {number}. Once upon a time in a small village there" for number in range(1, 201)]
RUNNER = "llmserve_runner.py"
OWNER = """
import os, sys
if sys.argv[1:2] == ["run"] and not os.path.lexists(os.path.join(os.environ["OARBANK_MODULE_DATA"], "models")):
    os.symlink({models!r}, os.path.join(os.environ["OARBANK_MODULE_DATA"], "models"))
"""


def main() -> int:
    """Each backend in turn; what the kit prints goes where this does."""
    parser = argparse.ArgumentParser(description="Judge llmserve with a real model. The rest goes to conform.")
    parser.add_argument("--backend", action="append", choices=sorted(MODELS), help="only this one (all)")
    asked, rest = parser.parse_known_args()
    backends = asked.backend or list(MODELS)
    with tempfile.TemporaryDirectory(prefix="llmserve-conform-") as scratch:
        module = _module(Path(scratch, "llmserve"), _models(Path(scratch, "models"), backends))
        codes = {backend: _judge(backend, module, rest) for backend in backends}
    for backend, code in codes.items():
        print(f"{backend}: {'conforms' if code == 0 else f'conform ended with {code}'}", file=sys.stderr)
    return max(codes.values())


def _models(folder: Path, backends: list[str]) -> Path:
    folder.mkdir()
    if "llamacpp" in backends:
        shutil.copyfile(gguf(), folder / MODELS["llamacpp"])
    if "mlx" in backends:
        convert(gguf(), folder / MODELS["mlx"])
    return folder


def _module(folder: Path, models: Path) -> Path:
    shutil.copytree(ROOT / "packages/llmserve", folder, ignore=shutil.ignore_patterns("__pycache__"))
    runner = folder / RUNNER
    runner.write_text(OWNER.format(models=str(models)) + runner.read_text("utf-8"), "utf-8")
    return folder


def _judge(backend: str, module: Path, rest: list[str]) -> int:
    payload = {"prompts": PROMPTS, "max_tokens": 256, "model": MODELS[backend], "backend": backend}
    asked = {"stage": "batch", "duty": DUTY, "window_s": WINDOW_S}
    specs = [
        {**asked, "name": f"{backend} at {DUTY}", "payload": payload},
        {**asked, "name": f"{backend} at {DUTY} in slices", "payload": {**payload, "longest_ms": LONGEST_MS}},
    ]
    fixtures = module.parent / f"{backend}.json"
    fixtures.write_text(json.dumps({"duty_specs": specs}))
    print(f"== {backend}", file=sys.stderr, flush=True)
    program = Path(sys.executable).with_name("oarbank-sdk")
    return subprocess.run([program, "conform", module, "--fixtures", fixtures, *rest], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
