"""docs/share-your-gpu.md, "Try it without a GPU": its commands as written, in an empty home, and what they print.

What takes a minute of the reader's time takes a few seconds of a test's: the agent's clock is made faster and the work
shorter; and the game may slow as a busy machine wants it, so that its guard lets the work end. And the game by itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oarbank_agent_check.process_table import ProcTable, system_table
from tests.agent_check.jobs_on_trial import HEARS_INTERRUPTS, PROGRAM
from tests.agent_check.wait import eventually

ROOT = Path(__file__).parents[2]
PAGE = ROOT / Path("docs/share-your-gpu.md")
SECTION = PAGE.read_text("utf-8").partition("## Try it without a GPU")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^```bash\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
(PRINTED,) = re.findall(r"^```text\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
GAME = ROOT / "examples" / "frame_counter.py"
# What stands in for the program: it changes what the reader has just written, and hands on.
QUICK = """#!/bin/sh
sed -i 's/"max_tokens": 400/"max_tokens": 20/' work.json
sed -i 's/^target = 0.2 /target = 1.0 /' guard.toml
exec "{program}" "$@" --time-factor 4
"""
linux = pytest.mark.skipif(
    not isinstance(system_table(), ProcTable), reason="needs Linux: the CPU's stand-in was run there"
)


def said(text: str) -> list[str]:
    """What the program says for good, whatever the numbers; how the work goes in between depends on the machine."""
    lines = [line for line in text.splitlines() if line.startswith("oarbank-agent-check: ")]
    return [re.sub(r"[0-9]+", "N", line) for line in lines if "paused" not in line and "goes on" not in line]


@linux
@pytest.mark.realtime
def test_section_runs_as_written_and_prints_what_it_shows(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    quick = tmp_path / "bin" / "oarbank-agent-check"
    quick.write_text(QUICK.format(program=PROGRAM))
    quick.chmod(0o755)
    path = os.pathsep.join([str(quick.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    kept = {key: value for key, value in os.environ.items() if not key.startswith("XDG_")}

    reader = subprocess.Popen(
        ["bash", "-eu", "-c", "\n".join(COMMANDS)],
        cwd=ROOT, env={**kept, "PATH": path, "HOME": str(tmp_path / "home")}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        _, err = reader.communicate(timeout=110)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(reader.pid, signal.SIGKILL)  # the game too
        reader.communicate()

    assert len(COMMANDS) == 2
    assert reader.returncode == 0, err
    assert said(err) == said(PRINTED)
    assert re.search("^0:[0-9]{2}  game: learning its speed, GPU ", err, re.MULTILINE)
    assert re.search("^0:[0-9]{2}  game: uses the GPU, GPU 0", err, re.MULTILINE)
    folder = tmp_path / "home" / "try-guard"
    assert (folder / "guard-results" / "rivers" / "result.json").exists()
    assert "Earlier runs" not in (folder / "gpu.html").read_text()
    assert int((folder / "frames").read_text()) > 0


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX: signals")
@pytest.mark.realtime
def test_game_counts_its_frames_and_ends_with_an_interrupt(tmp_path: Path) -> None:
    counter = tmp_path / "drawn"
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_INTERRUPTS, sys.executable, str(GAME), str(counter)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(counter.exists, "a frame")
        numbers = [int(counter.read_text()) for _ in range(200)]  # never half a number, whenever it is read
        eventually(lambda: int(counter.read_text()) > numbers[-1], "another frame")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()

    assert numbers == sorted(numbers)
    assert numbers[0] >= 1
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--rate", "30"], "usage: python frame_counter.py [FILE]"),
        (
            ["absent/frames"],
            "absent/frames: must be a file that can be written; No such file or directory. Name another.",
        ),
    ],
)
def test_game_refuses_wrong_words_in_a_line(words: list[str], line: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(GAME), *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"{line}\n")
