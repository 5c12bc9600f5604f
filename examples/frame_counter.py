"""A program to protect, for trying out `oarbank-agent-check guard` without a game and without a GPU.

    python frame_counter.py [FILE]

It "draws" frames: each is a fixed amount of work on one CPU core, and 60 a second are aimed at. When something else
takes the core, frames come late, as a game's do. The number of frames drawn stands in FILE (`frames` unless you say
otherwise), which is replaced as a whole and only grows. It prints its rate every five seconds; Ctrl-C ends it.

Standard library only: the file works when it is copied alone.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

FRAMES_A_SECOND = 60
FRAME_CPU_S = 0.004
"""CPU time that a frame takes on this machine: about a quarter of the time between two."""

TOLD_EVERY_S = 5.0


def work(rounds: int) -> int:
    """Do so many rounds of the same arithmetic; the result has no meaning."""
    state = 1
    for _ in range(rounds):
        state = (state * 1103515245 + 12345) % 2147483648
    return state


def rounds_a_frame() -> int:
    """Say how many rounds take `FRAME_CPU_S` here, by the fastest of a few tries; it stays so for all frames."""
    tried = 20_000
    fastest = min(_cpu_seconds(tried) for _ in range(10))
    return max(1, round(tried * FRAME_CPU_S / max(fastest, 1e-6)))


def _cpu_seconds(rounds: int) -> float:
    began = time.process_time()
    work(rounds)
    return time.process_time() - began


def write(path: Path, frames: int) -> None:
    """Replace the file, so that a reader finds the old number or the new one, and never half of one."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(f"{frames}\n")
    os.replace(beside, path)


def draw(path: Path) -> None:
    """Draw until Ctrl-C. A frame that is late is drawn at once; what was missed is not made up for."""
    rounds, frames, told = rounds_a_frame(), 0, 0
    due = told_at = time.monotonic()
    while True:
        work(rounds)
        frames += 1
        write(path, frames)
        now = time.monotonic()
        if now - told_at >= TOLD_EVERY_S:
            print(f"{frames} frames, {(frames - told) / (now - told_at):.1f} a second", flush=True)
            told, told_at = frames, now
        due = max(due + 1 / FRAMES_A_SECOND, now)
        time.sleep(due - now)


def main() -> int:
    """Draw into the file that is named; the exit status: 0 after Ctrl-C, 2 for wrong words or a file that cannot be."""
    words = sys.argv[1:]
    if len(words) > 1 or any(word.startswith("-") for word in words):
        print("usage: python frame_counter.py [FILE]", file=sys.stderr)
        return 2
    path = Path(words[0] if words else "frames")
    try:
        draw(path)
    except KeyboardInterrupt:
        pass
    except OSError as fault:
        print(f"{path}: must be a file that can be written; {fault.strerror}. Name another.", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
