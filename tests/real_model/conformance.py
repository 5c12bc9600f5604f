"""`hatch run llm:conform`: the conformance kit on llmserve with real backends, at duty 0.3.

A data folder is laid out as an owner would, the tests' model in each backend's form below `models`, and given to the
kit (`conform --data`). Exit 0 when every backend conforms, else the largest of the kit's exit codes.
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


def main() -> int:
    """Each backend in turn; what the kit prints goes where this does."""
    parser = argparse.ArgumentParser(description="Judge llmserve with a real model. The rest goes to conform.")
    parser.add_argument("--backend", action="append", choices=sorted(MODELS), help="only this one (all)")
    asked, rest = parser.parse_known_args()
    backends = asked.backend or list(MODELS)
    with tempfile.TemporaryDirectory(prefix="llmserve-conform-") as scratch:
        _lay_out(Path(scratch, "data", "models"), backends)
        codes = {backend: _judge(backend, Path(scratch), rest) for backend in backends}
    for backend, code in codes.items():
        print(f"{backend}: {'conforms' if code == 0 else f'conform ended with {code}'}", file=sys.stderr)
    return max(codes.values())


def _lay_out(models: Path, backends: list[str]) -> None:
    models.mkdir(parents=True)
    if "llamacpp" in backends:
        shutil.copyfile(gguf(), models / MODELS["llamacpp"])
    if "mlx" in backends:
        convert(gguf(), models / MODELS["mlx"])


def _judge(backend: str, scratch: Path, rest: list[str]) -> int:
    payload = {"prompts": PROMPTS, "max_tokens": 256, "model": MODELS[backend], "backend": backend}
    asked = {"stage": "batch", "duty": DUTY, "window_s": WINDOW_S}
    specs = [
        {**asked, "name": f"{backend} at {DUTY}", "payload": payload},
        {**asked, "name": f"{backend} at {DUTY} in slices", "payload": {**payload, "longest_ms": LONGEST_MS}},
    ]
    fixtures = scratch / f"{backend}.json"
    fixtures.write_text(json.dumps({"duty_specs": specs}))
    print(f"== {backend}", file=sys.stderr, flush=True)
    program = Path(sys.executable).with_name("oarbank-sdk")
    module = ROOT / "packages/llmserve"
    command = [program, "conform", module, "--fixtures", fixtures, "--data", scratch / "data", *rest]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
