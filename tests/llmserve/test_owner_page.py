"""docs/run-llmserve.md: every command on it is run as it is written, but those that say they are not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from oarbank_llmserve.ledger import KEPT_BYTES, KEPT_S
from tests.llmserve.test_inventory import SMOL, gguf_bytes

PAGE = Path("docs/run-llmserve.md")
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
RUN = [block for block in BLOCKS if not block.startswith("# not run here: ")]
# The kit may say that it could not tell, on a machine that is busy with other things.
STATUSES = {"oarbank-sdk conform": (0, 3), "oarbank-agent-check run": (0, 3)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An owner's working folder, with the model that the page has the owner copy."""
    folder = tmp_path_factory.mktemp("owner")
    (folder / "llmserve-data/models").mkdir(parents=True)
    (folder / "llmserve-data/models/my-model.gguf").write_bytes(gguf_bytes(SMOL))
    return folder


SAYS = {
    "oarbank-llmserve doctor": "ok    backend stub",
    "oarbank-llmserve module": "conforms",
    "oarbank-llmserve models": "my-model.gguf  llamacpp",
    "printf": "tokens/s without the idle",
    "cat > prompts.jsonl": '"id":"haiku"',
    "python -I": '"summary":"1 prompts for my-model.gguf in 1 jobs of campaign c_llm_',
    "oarbank-agent-check run": "files in llmserve-batch-result",
}


def test_every_block_that_is_run_is_known_here() -> None:
    assert len(RUN) == len(SAYS)
    assert [next(begin for begin in SAYS if block.startswith(begin)) for block in RUN] == list(SAYS)
    assert len(BLOCKS) - len(RUN) == 4


@pytest.mark.realtime
@pytest.mark.parametrize(("block", "says"), list(zip(RUN, SAYS.values(), strict=True)), ids=list(SAYS))
def test_block_runs_as_written(folder: Path, block: str, says: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-eu", "-c", block], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    allowed = next((codes for begin, codes in STATUSES.items() if begin in block), (0,))

    assert ran.returncode in allowed, ran.stderr
    assert says in ran.stdout + ran.stderr or ran.returncode == 3
    assert "Traceback" not in ran.stderr


def test_page_says_what_the_code_keeps_and_the_example_is_locked_by_its_owner() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert f"else {KEPT_S / 86400:g} days, and at most {KEPT_BYTES // 2**20} MiB in all" in text
    for name in set(re.findall(r"examples/[\w./-]+", text)):
        assert Path(name).exists(), name
    assert "uv.lock" in Path("examples/llmserve-uv/.gitignore").read_text(encoding="utf-8")
